// SPDX-License-Identifier: MIT
//! Kvasir from Rust: a thin safe layer over `libkvasir`. [`sys`] has the raw declarations; `kvasir.h` is their manual.
//!
//! A [`Model`] may be shared by threads, a [`Context`] may move between them and is used by one at a time, which the
//! compiler checks:
//!
//! ```
//! fn shared<T: Send + Sync>() {}
//! fn moved<T: Send>() {}
//! shared::<kvasir::Runtime>();
//! shared::<kvasir::Model>();
//! shared::<kvasir::Tokenizer>();
//! shared::<kvasir::Cancel>();
//! moved::<kvasir::Context>();
//! moved::<kvasir::Sampler>();
//! moved::<kvasir::TextStream>();
//! ```
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<kvasir::Context>(); // one thread at a time
//! ```
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<kvasir::Sampler>();
//! ```
//! Logits are borrowed from the context and end with the next call that changes it:
//!
//! ```compile_fail,E0499
//! fn keep(context: &mut kvasir::Context) -> kvasir::Result<f32> {
//!     let first = context.prefill(0, &[1, 2], Default::default())?;
//!     let second = context.prefill(0, &[3], Default::default())?;
//!     Ok(first.logits[0] + second.logits[0])
//! }
//! ```
//! ```compile_fail,E0502
//! fn look(context: &mut kvasir::Context) -> kvasir::Result<f32> {
//!     let step = context.prefill(0, &[1, 2], Default::default())?;
//!     let info = context.sequence_length(0)?; // a call on the context, while its logits are held
//!     Ok(step.logits[0] + info as f32)
//! }
//! ```
//! A tokenizer is a part of its model:
//!
//! ```compile_fail,E0505
//! fn drop_first(model: kvasir::Model) -> kvasir::Result<Vec<i32>> {
//!     let tokenizer = model.tokenizer()?;
//!     drop(model);
//!     tokenizer.encode(b"text", Default::default())
//! }
//! ```
//! Handles are not copied, so they are released once:
//!
//! ```compile_fail,E0599
//! fn twice(context: &kvasir::Context) -> kvasir::Context { context.clone() }
//! ```
//! A context keeps its model alive, and a model its runtime: drop them in any order. A callback that panics stops the
//! call it runs in, which returns an error with the status [`CALLBACK_PANICKED`].

mod callback;
mod cancel;
mod context;
mod error;
mod model;
mod runtime;
mod sampler;
pub mod sys;
mod tokenizer;

pub use cancel::Cancel;
pub use context::{Context, ContextOptions, Row, Sequence, Step, StepOptions};
pub use error::{Error, Result, CALLBACK_PANICKED};
pub use model::{LoadOptions, Model};
pub use runtime::{LogLevel, Runtime, RuntimeOptions};
pub use sampler::{Sampler, SamplerOptions};
pub use tokenizer::{EncodeOptions, TextStream, Tokenizer};
