// SPDX-License-Identifier: MIT
//
// Callbacks of one call: no panic passes the C code between. The first one is kept, stops the call through its cancel
// flag, and becomes the call's error.
use std::any::Any;
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::cancel::Cancel;
use crate::context::Row;
use crate::error::{Error, Result, CALLBACK_PANICKED};
use crate::sys::*;

/// What a panic said.
pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Error {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "no message",
    };
    let error = Error::new(CALLBACK_PANICKED, format!("a callback panicked: {text}"));
    std::mem::forget(payload); // whose drop could panic again
    error
}

pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, u64);
pub(crate) type RowFn<'a> = &'a mut dyn FnMut(Row);

/// Lives on the stack around one call; its address is the callbacks' user pointer.
pub(crate) struct Calls<'a> {
    progress: Option<Progress<'a>>,
    row: Option<RowFn<'a>>,
    given: Option<&'a Cancel>,
    own: Option<Cancel>,
    panic: Option<Error>,
}

impl<'a> Calls<'a> {
    pub fn new(given: Option<&'a Cancel>, progress: Option<Progress<'a>>, row: Option<RowFn<'a>>) -> Result<Self> {
        let wanted = given.is_none() && (progress.is_some() || row.is_some());
        let own = if wanted { Some(Cancel::new()?) } else { None };
        Ok(Self { progress, row, given, own, panic: None })
    }

    fn flag(&self) -> Option<&Cancel> {
        self.given.or(self.own.as_ref())
    }

    pub fn cancel(&self) -> *const kv_cancel {
        self.flag().map_or(std::ptr::null(), Cancel::raw)
    }

    pub fn progress_fn(&self) -> kv_progress_fn {
        self.progress.as_ref().map(|_| on_progress as unsafe extern "C" fn(*mut c_void, u64, u64))
    }

    pub fn row_fn(&self) -> kv_row_fn {
        match self.row {
            Some(_) => Some(on_row),
            None => None,
        }
    }

    pub fn user(&mut self) -> *mut c_void {
        (self as *mut Self).cast()
    }

    fn run(&mut self, body: impl FnOnce(&mut Self)) {
        if self.panic.is_some() {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(self))) {
            self.panic = Some(panicked(payload));
            if let Some(flag) = self.flag() {
                flag.set();
            }
        }
    }

    /// The call's outcome, unless a callback panicked.
    pub fn finish(&mut self, outcome: Result<()>) -> Result<()> {
        match self.panic.take() {
            None => outcome,
            Some(error) => {
                if let Some(given) = self.given {
                    given.reset(); // this press was ours
                }
                Err(error)
            }
        }
    }
}

unsafe extern "C" fn on_progress(user: *mut c_void, done: u64, total: u64) {
    // SAFETY: `user` is the Calls around the running call, on the calling thread.
    let calls = unsafe { &mut *user.cast::<Calls>() };
    calls.run(|c| {
        if let Some(progress) = c.progress.as_mut() {
            progress(done, total);
        }
    });
}

unsafe extern "C" fn on_row(user: *mut c_void, sequence: kv_sequence, position: u64, row: *const f32, width: u32) {
    // SAFETY: as above; the row is valid during the callback.
    let calls = unsafe { &mut *user.cast::<Calls>() };
    let values = unsafe { std::slice::from_raw_parts(row, width as usize) };
    calls.run(|c| {
        if let Some(f) = c.row.as_mut() {
            f(Row { sequence, position, values });
        }
    });
}
