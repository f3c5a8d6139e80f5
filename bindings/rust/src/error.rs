// SPDX-License-Identifier: MIT
//
// A status and its sentence as a Rust error, and the one way in which fallible functions are called.
use std::ffi::{CStr, CString};
use std::fmt;

use crate::sys::*;

/// The status of a call that a panicking callback stopped; no status of the library has this value.
pub const CALLBACK_PANICKED: kv_status = -1;

pub type Result<T> = std::result::Result<T, Error>;

/// A call that failed: `status` is one of `sys::KV_*`, the sentence says what and which value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: kv_status,
    message: String,
}

impl Error {
    pub(crate) fn new(status: kv_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn status(&self) -> kv_status {
        self.status
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// "KV_CONTEXT_FULL" and so on.
    pub fn status_name(&self) -> &'static str {
        if self.status == CALLBACK_PANICKED {
            return "CALLBACK_PANICKED";
        }
        // SAFETY: static storage, ASCII.
        unsafe { CStr::from_ptr(kv_status_name(self.status)) }.to_str().unwrap_or("KV_UNKNOWN")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status_name(), self.message)
    }
}

impl std::error::Error for Error {}

/// Runs one fallible function of the library.
pub(crate) fn check(call: impl FnOnce(*mut kv_error) -> kv_status) -> Result<()> {
    let mut error = kv_error::sized();
    match call(&mut error) {
        KV_OK => Ok(()),
        // SAFETY: a failing call fills the record; it was zero before, so it ends in NUL either way.
        status => Err(Error::new(status, unsafe { text_of(error.message.as_ptr()) })),
    }
}

/// A string of the library, copied. Bytes that are not UTF-8 (names from files) are replaced.
///
/// # Safety
/// `text` is NULL or ends in NUL.
pub(crate) unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// A string for the library.
pub(crate) fn c_text(text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|e| {
        Error::new(KV_INVALID_ARGUMENT, format!("text has a NUL byte at {}", e.nul_position()))
    })
}

/// A pointer that may be dangling in Rust when there is nothing at it, and is NULL in C.
pub(crate) fn pointer_of<T>(items: &[T]) -> *const T {
    if items.is_empty() {
        std::ptr::null()
    } else {
        items.as_ptr()
    }
}
