// SPDX-License-Identifier: MIT
//
// Text to tokens and back; text is bytes, which need not be UTF-8.
use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::{null, null_mut, NonNull};

use crate::error::{check, pointer_of, Error, Result};
use crate::model::Model;
use crate::sys::*;

#[derive(Clone, Copy, Debug, Default)]
pub struct EncodeOptions {
    /// Add the begin (and end) token the model asks for.
    pub add_special: bool,
    /// Text that spells a special token becomes that token; never for text from users.
    pub parse_special: bool,
}

/// The tokenizer of a model.
#[derive(Clone, Copy, Debug)]
pub struct Tokenizer<'m> {
    raw: NonNull<kv_tokenizer>,
    model: PhantomData<&'m Model>,
}

// SAFETY: any thread.
unsafe impl Send for Tokenizer<'_> {}
unsafe impl Sync for Tokenizer<'_> {}

impl Tokenizer<'_> {
    pub(crate) unsafe fn borrowed(raw: NonNull<kv_tokenizer>) -> Self {
        Self { raw, model: PhantomData }
    }

    pub fn encode(&self, text: impl AsRef<[u8]>, options: EncodeOptions) -> Result<Vec<i32>> {
        let text = text.as_ref();
        let mut flags = 0;
        if options.add_special {
            flags |= KV_TOKENIZE_ADD_SPECIAL;
        }
        if options.parse_special {
            flags |= KV_TOKENIZE_PARSE_SPECIAL;
        }
        sized_twice(|buffer, capacity, count, e| unsafe {
            kv_tokenize(self.raw.as_ptr(), pointer_of(text).cast(), text.len(), flags, buffer, capacity, count, e)
        })
    }

    /// The bytes of tokens. `special`: special tokens appear as their spelling.
    pub fn decode(&self, tokens: &[i32], special: bool) -> Result<Vec<u8>> {
        let flags = if special { KV_TEXT_SPECIAL } else { 0 };
        sized_twice(|buffer: *mut u8, capacity, length, e| unsafe {
            let text: *mut c_char = buffer.cast();
            kv_detokenize(self.raw.as_ptr(), pointer_of(tokens), tokens.len(), flags, text, capacity, length, e)
        })
    }

    pub fn ends_generation(&self, token: i32) -> bool {
        unsafe { kv_token_ends_generation(self.raw.as_ptr(), token) != 0 }
    }

    /// Text as tokens come, in whole characters. Keeps the model alive.
    pub fn stream(&self) -> Result<TextStream> {
        let mut raw = null_mut();
        check(|e| unsafe { kv_text_stream_create(self.raw.as_ptr(), 0, &mut raw, e) })?;
        Ok(TextStream { raw: NonNull::new(raw).expect("made") })
    }
}

/// Asks for the size, then for the content.
fn sized_twice<T: Copy + Default>(
    call: impl Fn(*mut T, usize, *mut usize, *mut kv_error) -> kv_status,
) -> Result<Vec<T>> {
    let mut count = 0;
    match check(|e| call(null_mut(), 0, &mut count, e)) {
        Err(error) if error.status() != KV_BUFFER_TOO_SMALL => return Err(error),
        _ => {}
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut items = Vec::new();
    if items.try_reserve_exact(count).is_err() {
        return Err(Error::new(KV_OUT_OF_MEMORY, format!("{count} items")));
    }
    items.resize(count, T::default());
    check(|e| call(items.as_mut_ptr(), count, &mut count, e))?;
    Ok(items)
}

/// One thread at a time; bytes it returns are valid until its next call.
#[derive(Debug)]
pub struct TextStream {
    raw: NonNull<kv_text_stream>,
}

// SAFETY: may move between threads; every call takes &mut self.
unsafe impl Send for TextStream {}

impl TextStream {
    pub fn push(&mut self, token: i32) -> Result<&[u8]> {
        self.bytes(|raw, text, length, e| unsafe { kv_text_stream_push(raw, token, text, length, e) })
    }

    /// What was held back; the stream starts anew.
    pub fn flush(&mut self) -> Result<&[u8]> {
        self.bytes(|raw, text, length, e| unsafe { kv_text_stream_flush(raw, text, length, e) })
    }

    fn bytes(
        &mut self,
        call: impl FnOnce(*mut kv_text_stream, *mut *const c_char, *mut usize, *mut kv_error) -> kv_status,
    ) -> Result<&[u8]> {
        let (mut text, mut length) = (null(), 0);
        check(|e| call(self.raw.as_ptr(), &mut text, &mut length, e))?;
        // SAFETY: never NULL on success; valid until the next call, which needs &mut self.
        Ok(unsafe { std::slice::from_raw_parts(text.cast(), length) })
    }
}

impl Drop for TextStream {
    fn drop(&mut self) {
        unsafe { kv_text_stream_release(self.raw.as_ptr()) }
    }
}
