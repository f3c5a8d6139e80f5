// SPDX-License-Identifier: MIT
//
// A token out of logits.
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null_mut, NonNull};

use crate::callback::panicked;
use crate::error::{check, pointer_of, Error, Result};
use crate::sys::*;

type HookFn = Box<dyn FnMut(&mut [f32]) + Send>;

/// Default: the largest logit. Fields are those of `kv_sampler_options`.
#[derive(Default)]
pub struct SamplerOptions<'a> {
    pub temperature: f32,
    pub top_k: u32,
    /// 0 = one token, 1 = all.
    pub top_p: Option<f32>,
    pub min_p: f32,
    pub repetition_penalty: f32,
    pub seed: u64,
    /// Added to the logits of tokens; negative infinity excludes one.
    pub bias: &'a [(i32, f32)],
    /// May change the logits.
    pub hook: Option<HookFn>,
}

struct Hook {
    call: HookFn,
    panic: Option<Error>,
}

pub struct Sampler {
    raw: NonNull<kv_sampler>,
    hook: *mut Hook, // NULL, or a Box that the library's user pointer aliases
}

// SAFETY: may move between threads (the hook is Send); every call takes &mut self.
unsafe impl Send for Sampler {}

impl Sampler {
    pub fn new(options: SamplerOptions) -> Result<Self> {
        let bias: Vec<_> = options.bias.iter().map(|&(token, bias)| kv_logit_bias { token, bias }).collect();
        let mut raw_options = kv_sampler_options::sized();
        raw_options.temperature = options.temperature;
        raw_options.top_k = options.top_k;
        raw_options.use_top_p = options.top_p.is_some() as u32;
        raw_options.top_p = options.top_p.unwrap_or(0.0);
        raw_options.min_p = options.min_p;
        raw_options.repetition_penalty = options.repetition_penalty;
        raw_options.seed = options.seed;
        raw_options.bias = pointer_of(&bias);
        raw_options.bias_count = bias.len() as u64;
        let hook = options.hook.map_or(null_mut(), |call| Box::into_raw(Box::new(Hook { call, panic: None })));
        if !hook.is_null() {
            raw_options.hook = Some(on_logits);
            raw_options.hook_user = hook.cast();
        }
        let mut raw = null_mut();
        if let Err(error) = check(|e| unsafe { kv_sampler_create(&raw_options, &mut raw, e) }) {
            if !hook.is_null() {
                // SAFETY: nobody else has it.
                drop(unsafe { Box::from_raw(hook) });
            }
            return Err(error);
        }
        Ok(Self { raw: NonNull::new(raw).expect("made"), hook })
    }

    /// Chooses a token; `accept` enters it into the history.
    pub fn sample(&mut self, logits: &[f32]) -> Result<i32> {
        let count = u32::try_from(logits.len())
            .map_err(|_| Error::new(KV_INVALID_ARGUMENT, format!("{} logits are too many", logits.len())))?;
        let mut sample = kv_sample::sized();
        let outcome =
            check(|e| unsafe { kv_sampler_sample(self.raw.as_ptr(), pointer_of(logits), count, &mut sample, e) });
        // SAFETY: the hook runs during the call alone, which is over.
        if let Some(panic) = unsafe { self.hook.as_mut() }.and_then(|hook| hook.panic.take()) {
            return Err(panic);
        }
        outcome.map(|()| sample.token)
    }

    pub fn accept(&mut self, token: i32) -> Result<()> {
        check(|e| unsafe { kv_sampler_accept(self.raw.as_ptr(), token, e) })
    }

    /// Empties the history and starts the random stream of `seed`.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        check(|e| unsafe { kv_sampler_reset(self.raw.as_ptr(), seed, e) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        unsafe { kv_sampler_release(self.raw.as_ptr()) };
        if !self.hook.is_null() {
            // SAFETY: made by Box::into_raw; the sampler that knew it is gone.
            drop(unsafe { Box::from_raw(self.hook) });
        }
    }
}

unsafe extern "C" fn on_logits(user: *mut c_void, logits: *mut f32, count: u32) {
    // SAFETY: `user` is the sampler's Hook, the logits are `count` floats of ours during the callback.
    let hook = unsafe { &mut *user.cast::<Hook>() };
    let logits = unsafe { std::slice::from_raw_parts_mut(logits, count as usize) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (hook.call)(logits))) {
        hook.panic = Some(panicked(payload));
    }
}
