// SPDX-License-Identifier: MIT
//
// The runtime: where plugins come from, and the log.
use std::ffi::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{null_mut, NonNull};

use crate::error::{c_text, check, Result};
use crate::sys::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
}

type LogFn = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

/// Default: silent, plugins searched where `kvasir.h` says.
#[derive(Default)]
pub struct RuntimeOptions {
    /// `sys::KV_RUNTIME_*`.
    pub flags: u32,
    /// Absolute directories, ':' between them, searched for plugins first.
    pub backend_path: Option<String>,
    /// Any thread; must not use the library. A panic in it is dropped.
    pub log: Option<LogFn>,
}

/// Plugins, devices, log.
#[derive(Debug)]
pub struct Runtime {
    raw: NonNull<kv_runtime>,
}

// SAFETY: the library's runtime may be used by any thread.
unsafe impl Send for Runtime {}
unsafe impl Sync for Runtime {}

impl Runtime {
    pub fn new(options: RuntimeOptions) -> Result<Self> {
        let path = options.backend_path.map(c_text).transpose()?;
        let mut raw_options = kv_runtime_options::sized();
        raw_options.flags = options.flags;
        raw_options.backend_path = path.as_ref().map_or(std::ptr::null(), |p| p.as_ptr());
        let log: *mut LogFn = options.log.map_or(null_mut(), |log| Box::into_raw(Box::new(log)));
        if !log.is_null() {
            raw_options.log = Some(on_log);
            raw_options.log_user = log.cast();
            raw_options.destroyed = Some(on_destroyed);
            raw_options.destroyed_user = log.cast();
        }
        let mut raw = null_mut();
        if let Err(error) = check(|e| unsafe { kv_runtime_create(&raw_options, &mut raw, e) }) {
            if !log.is_null() {
                // SAFETY: a runtime that was not made does not call `destroyed`.
                drop(unsafe { Box::from_raw(log) });
            }
            return Err(error);
        }
        Ok(Self { raw: NonNull::new(raw).expect("made") })
    }

    /// Loads a plugin from an absolute path; it wins over one of the same name found by search.
    pub fn load_backend(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_text(path.as_ref().as_os_str().as_encoded_bytes())?;
        check(|e| unsafe { kv_runtime_load_backend(self.raw.as_ptr(), path.as_ptr(), e) })
    }

    pub(crate) fn raw(&self) -> *mut kv_runtime {
        self.raw.as_ptr()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        unsafe { kv_runtime_release(self.raw.as_ptr()) }
    }
}

unsafe extern "C" fn on_log(user: *mut c_void, level: i32, text: *const c_char, length: usize) {
    // SAFETY: `user` lives until on_destroyed; the text is `length` bytes.
    let log = unsafe { &*user.cast::<LogFn>() };
    let text = String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text.cast(), length) });
    let level = match level {
        KV_LOG_ERROR => LogLevel::Error,
        KV_LOG_WARNING => LogLevel::Warning,
        KV_LOG_INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| log(level, &text))) {
        std::mem::forget(payload);
    }
}

unsafe extern "C" fn on_destroyed(user: *mut c_void) {
    // SAFETY: made by Box::into_raw; nothing logs any more.
    let log = unsafe { Box::from_raw(user.cast::<LogFn>()) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(log))) {
        std::mem::forget(payload);
    }
}
