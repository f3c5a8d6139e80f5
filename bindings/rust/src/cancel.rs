// SPDX-License-Identifier: MIT
//
// The flag that stops long calls.
use std::ptr::{null_mut, NonNull};

use crate::error::{check, Result};
use crate::sys::*;

/// A sticky flag: hand it to calls, set it from any thread; share it with `Arc` or a scoped thread.
#[derive(Debug)]
pub struct Cancel {
    raw: NonNull<kv_cancel>,
}

// SAFETY: an atomic flag; any thread, any time.
unsafe impl Send for Cancel {}
unsafe impl Sync for Cancel {}

impl Cancel {
    pub fn new() -> Result<Self> {
        let mut raw = null_mut();
        check(|e| unsafe { kv_cancel_create(&mut raw, e) })?;
        Ok(Self { raw: NonNull::new(raw).expect("made") })
    }

    pub fn set(&self) {
        unsafe { kv_cancel_set(self.raw.as_ptr()) }
    }

    pub fn reset(&self) {
        unsafe { kv_cancel_reset(self.raw.as_ptr()) }
    }

    pub fn is_set(&self) -> bool {
        unsafe { kv_cancel_is_set(self.raw.as_ptr()) != 0 }
    }

    pub(crate) fn raw(&self) -> *const kv_cancel {
        self.raw.as_ptr()
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        unsafe { kv_cancel_release(self.raw.as_ptr()) }
    }
}
