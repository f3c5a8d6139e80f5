// SPDX-License-Identifier: MIT
//
// A context: its sequences, and running them. What a step yields borrows the context.
use std::ptr::{null, null_mut, NonNull};

use crate::callback::{Calls, Progress, RowFn};
use crate::cancel::Cancel;
use crate::error::{c_text, check, pointer_of, text_of, Error, Result};
use crate::model::Model;
use crate::sys::*;

/// A sequence of a context; 0 exists from the start.
pub type Sequence = kv_sequence;

/// Zero and None mean default; fields are those of `kv_context_options`.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// "cpu", "vulkan:1", "auto".
    pub device: Option<String>,
    pub max_tokens: u64,
    pub memory_budget: u64,
    pub threads: u32,
    /// `sys::KV_COMPUTE_*`.
    pub compute_mode: u32,
    pub max_batch_tokens: u32,
    pub max_sequences: u32,
}

/// One output row that a callback sees.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub sequence: Sequence,
    pub position: u64,
    pub values: &'a [f32],
}

#[derive(Default)]
pub struct StepOptions<'a> {
    pub cancel: Option<&'a Cancel>,
    /// done and total tokens, after each internal batch.
    pub progress: Option<Progress<'a>>,
    /// Every token's row instead of the last one's.
    pub row: Option<RowFn<'a>>,
    /// A cancelled call keeps the internal batches that were finished.
    pub keep_chunks: bool,
}

/// What a step did with one sequence.
#[derive(Clone, Copy, Debug)]
pub struct Step<'c> {
    /// The last token's scores; empty with `StepOptions::row`.
    pub logits: &'c [f32],
    /// Tokens the sequence holds now.
    pub length: u64,
    pub computed: u64,
}

/// One device's cache and the sequences in it. Keeps its model alive.
#[derive(Debug)]
pub struct Context {
    raw: NonNull<kv_context>,
}

// SAFETY: may move between threads. Not Sync: one thread at a time.
unsafe impl Send for Context {}

impl Context {
    pub fn new(model: &Model, options: ContextOptions) -> Result<Self> {
        let device = options.device.map(c_text).transpose()?;
        let mut raw_options = kv_context_options::sized();
        raw_options.device = device.as_ref().map_or(null(), |d| d.as_ptr());
        raw_options.max_tokens = options.max_tokens;
        raw_options.memory_budget = options.memory_budget;
        raw_options.threads = options.threads;
        raw_options.compute_mode = options.compute_mode;
        raw_options.max_batch_tokens = options.max_batch_tokens;
        raw_options.max_sequences = options.max_sequences;
        let mut raw = null_mut();
        check(|e| unsafe { kv_context_create(model.raw(), &raw_options, &mut raw, e) })?;
        Ok(Self { raw: NonNull::new(raw).expect("made") })
    }

    pub fn info(&self) -> Result<kv_context_info> {
        let mut info = kv_context_info::sized();
        check(|e| unsafe { kv_context_get_info(self.raw.as_ptr(), &mut info, e) })?;
        Ok(info)
    }

    pub fn create_sequence(&mut self) -> Result<Sequence> {
        let mut out = 0;
        check(|e| unsafe { kv_sequence_create(self.raw.as_ptr(), &mut out, e) })?;
        Ok(out)
    }

    /// A new sequence that holds the first `length` tokens of another.
    pub fn fork(&mut self, sequence: Sequence, length: u64) -> Result<Sequence> {
        let mut out = 0;
        check(|e| unsafe { kv_sequence_fork(self.raw.as_ptr(), sequence, length, &mut out, e) })?;
        Ok(out)
    }

    pub fn truncate(&mut self, sequence: Sequence, length: u64) -> Result<()> {
        check(|e| unsafe { kv_sequence_truncate(self.raw.as_ptr(), sequence, length, e) })
    }

    pub fn release_sequence(&mut self, sequence: Sequence) -> Result<()> {
        check(|e| unsafe { kv_sequence_release(self.raw.as_ptr(), sequence, e) })
    }

    pub fn sequence_length(&self, sequence: Sequence) -> Result<u64> {
        let mut out = 0;
        check(|e| unsafe { kv_sequence_length(self.raw.as_ptr(), sequence, &mut out, e) })?;
        Ok(out)
    }

    /// Appends tokens to a sequence.
    pub fn prefill(&mut self, sequence: Sequence, tokens: &[i32], options: StepOptions) -> Result<Step<'_>> {
        let context = self.raw.as_ptr();
        let mut result = kv_step_result::sized();
        stepped(options, |raw_options, e| unsafe {
            kv_prefill(context, sequence, pointer_of(tokens), tokens.len(), raw_options, &mut result, e)
        })?;
        // SAFETY: the row is valid until the next call that changes the context, which is borrowed.
        Ok(unsafe { step_of(&result) })
    }

    /// Appends one token to each of some different sequences. Each has an outcome of its own; the outer error is a call
    /// that was refused or stopped as a whole.
    pub fn decode(&mut self, inputs: &[(Sequence, i32)], options: StepOptions) -> Result<Vec<Result<Step<'_>>>> {
        const UNTOUCHED: kv_status = -2; // no status of the library or of this crate
        let context = self.raw.as_ptr();
        let inputs: Vec<_> =
            inputs.iter().map(|&(sequence, token)| kv_decode_input { sequence, token, reserved: 0 }).collect();
        let mut blank = kv_step_result::sized();
        blank.status = UNTOUCHED;
        let mut results = vec![blank; inputs.len()];
        let outcome = stepped(options, |raw_options, e| unsafe {
            kv_decode_step(context, pointer_of(&inputs), inputs.len(), raw_options, results.as_mut_ptr(), e)
        });
        if let Err(error) = outcome {
            let own = |r: &kv_step_result| r.status == error.status();
            if !results.iter().any(own) {
                return Err(error);
            }
        }
        // SAFETY: as above; messages are valid as long as the rows.
        let each = |r: &kv_step_result| match r.status {
            KV_OK => Ok(unsafe { step_of(r) }),
            status => Err(Error::new(status, unsafe { text_of(r.message) })),
        };
        Ok(results.iter().map(each).collect())
    }

    /// `decode` of one token.
    pub fn decode_one(&mut self, sequence: Sequence, token: i32, options: StepOptions) -> Result<Step<'_>> {
        self.decode(&[(sequence, token)], options)?.remove(0)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { kv_context_release(self.raw.as_ptr()) }
    }
}

/// Runs a step with its callbacks around it.
fn stepped(
    options: StepOptions,
    call: impl FnOnce(*const kv_step_options, *mut kv_error) -> kv_status,
) -> Result<()> {
    let mut raw_options = kv_step_options::sized();
    raw_options.outputs = if options.row.is_some() { KV_OUTPUT_ALL } else { KV_OUTPUT_LAST };
    raw_options.keep_chunks = options.keep_chunks as u32;
    let mut calls = Calls::new(options.cancel, options.progress, options.row)?;
    raw_options.cancel = calls.cancel();
    raw_options.progress = calls.progress_fn();
    raw_options.row = calls.row_fn();
    let user = calls.user();
    raw_options.progress_user = user;
    raw_options.row_user = user;
    let outcome = check(|e| call(&raw_options, e));
    calls.finish(outcome)
}

unsafe fn step_of<'c>(result: &kv_step_result) -> Step<'c> {
    let logits = if result.rows.is_null() {
        &[]
    } else {
        std::slice::from_raw_parts(result.rows, result.width as usize)
    };
    Step { logits, length: result.length, computed: result.computed }
}
