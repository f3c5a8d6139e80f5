// SPDX-License-Identifier: MIT
//
// Models: loading, what they say about themselves, their tokenizer.
use std::path::Path;
use std::ptr::{null_mut, NonNull};

use crate::callback::{Calls, Progress};
use crate::cancel::Cancel;
use crate::error::{c_text, check, text_of, Error, Result};
use crate::runtime::Runtime;
use crate::sys::*;
use crate::tokenizer::Tokenizer;

#[derive(Default)]
pub struct LoadOptions<'a> {
    pub cancel: Option<&'a Cancel>,
    /// done and total bytes.
    pub progress: Option<Progress<'a>>,
}

/// A model: immutable, shared by any number of contexts on any threads.
#[derive(Debug)]
pub struct Model {
    raw: NonNull<kv_model>,
}

// SAFETY: the library's model may be used by any thread.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Model {
    /// Opens a GGUF file. (Mapping a file is left out: a file that is cut while mapped kills the process.)
    pub fn load(runtime: &Runtime, path: impl AsRef<Path>, options: LoadOptions) -> Result<Self> {
        let path = c_text(path.as_ref().as_os_str().as_encoded_bytes())?;
        Self::make(options, |raw_options, out, e| unsafe {
            kv_model_load_file(runtime.raw(), path.as_ptr(), raw_options, out, e)
        })
    }

    /// The same from memory, which is copied.
    pub fn from_bytes(runtime: &Runtime, bytes: &[u8], options: LoadOptions) -> Result<Self> {
        Self::make(options, |raw_options, out, e| unsafe {
            kv_model_load_memory(runtime.raw(), bytes.as_ptr().cast(), bytes.len(), raw_options, out, e)
        })
    }

    fn make(
        options: LoadOptions,
        load: impl FnOnce(*const kv_model_options, *mut *mut kv_model, *mut kv_error) -> kv_status,
    ) -> Result<Self> {
        let mut calls = Calls::new(options.cancel, options.progress, None)?;
        let mut raw_options = kv_model_options::sized();
        raw_options.cancel = calls.cancel();
        raw_options.progress = calls.progress_fn();
        raw_options.progress_user = calls.user();
        let mut raw = null_mut();
        let loaded = check(|e| load(&raw_options, &mut raw, e));
        let model = NonNull::new(raw).map(|raw| Self { raw }); // so that a panicking callback leaks nothing
        calls.finish(loaded)?;
        Ok(model.expect("made"))
    }

    pub fn architecture(&self) -> Result<String> {
        // SAFETY: the string lives as long as the model.
        Ok(unsafe { text_of(self.info()?.architecture) })
    }

    /// Sizes and counts; its pointers are the model's.
    pub fn info(&self) -> Result<kv_model_info> {
        let mut info = kv_model_info::sized();
        check(|e| unsafe { kv_model_get_info(self.raw.as_ptr(), &mut info, e) })?;
        Ok(info)
    }

    pub fn tokenizer(&self) -> Result<Tokenizer<'_>> {
        let raw = unsafe { kv_model_tokenizer(self.raw.as_ptr()) };
        match NonNull::new(raw.cast_mut()) {
            // SAFETY: the tokenizer lives as long as the model, which is borrowed.
            Some(raw) => Ok(unsafe { Tokenizer::borrowed(raw) }),
            None => Err(Error::new(KV_NOT_FOUND, "the model has no tokenizer")),
        }
    }

    pub(crate) fn raw(&self) -> *mut kv_model {
        self.raw.as_ptr()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { kv_model_release(self.raw.as_ptr()) }
    }
}
