// SPDX-License-Identifier: MIT
//
// Raw declarations of the C API; the header is their manual.
// Written by generate_sys.py from kvasir.h; change the header, not this file.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};
use std::marker::{PhantomData, PhantomPinned};

pub type kv_status = i32;
pub type kv_log_fn = Option<unsafe extern "C" fn(*mut c_void, i32, *const c_char, usize)>;
pub type kv_parallel_body_fn = Option<unsafe extern "C" fn(*mut c_void, u32)>;
pub type kv_parallel_for_fn = Option<unsafe extern "C" fn(*mut c_void, u32, kv_parallel_body_fn, *mut c_void)>;
pub type kv_sequence = u64;
pub type kv_progress_fn = Option<unsafe extern "C" fn(*mut c_void, u64, u64)>;
pub type kv_row_fn = Option<unsafe extern "C" fn(*mut c_void, kv_sequence, u64, *const f32, u32)>;
pub type kv_trace_fn = Option<unsafe extern "C" fn(*mut c_void, *const kv_trace_record)>;
pub type kv_logits_fn = Option<unsafe extern "C" fn(*mut c_void, *mut f32, u32)>;
pub const KV_OK: kv_status = 0;
pub const KV_INVALID_ARGUMENT: kv_status = 1;
pub const KV_NOT_FOUND: kv_status = 2;
pub const KV_UNSUPPORTED: kv_status = 3;
pub const KV_OUT_OF_MEMORY: kv_status = 4;
pub const KV_CONTEXT_FULL: kv_status = 5;
pub const KV_CANCELLED: kv_status = 6;
pub const KV_DEVICE_LOST: kv_status = 7;
pub const KV_INCOMPATIBLE: kv_status = 8;
pub const KV_DENIED: kv_status = 9;
pub const KV_INTERNAL: kv_status = 10;
pub const KV_CORRUPT: kv_status = 11;
pub const KV_BUFFER_TOO_SMALL: kv_status = 12;
pub const KV_BUSY: kv_status = 13;
pub const KV_BAD_LOGITS: kv_status = 14;
pub const KV_IO: kv_status = 15;
pub const KV_TIMEOUT: kv_status = 16;
pub const KV_LOG_DEBUG: i32 = 1;
pub const KV_LOG_INFO: i32 = 2;
pub const KV_LOG_WARNING: i32 = 3;
pub const KV_LOG_ERROR: i32 = 4;
pub const KV_TYPE_DEFAULT: u32 = 0;
pub const KV_TYPE_F32: u32 = 1;
pub const KV_TYPE_F16: u32 = 2;
pub const KV_TYPE_BF16: u32 = 3;
pub const KV_TYPE_Q8_0: u32 = 4;
pub const KV_TYPE_Q4_0: u32 = 5;
pub const KV_TYPE_Q4_1: u32 = 6;
pub const KV_TYPE_Q5_0: u32 = 7;
pub const KV_TYPE_Q5_1: u32 = 8;
pub const KV_TYPE_Q2_K: u32 = 9;
pub const KV_TYPE_Q3_K: u32 = 10;
pub const KV_TYPE_Q4_K: u32 = 11;
pub const KV_TYPE_Q5_K: u32 = 12;
pub const KV_TYPE_Q6_K: u32 = 13;
pub const KV_TYPE_IQ4_NL: u32 = 14;
pub const KV_TYPE_IQ4_XS: u32 = 15;
pub const KV_COMPUTE_DEFAULT: u32 = 0;
pub const KV_COMPUTE_EXACT: u32 = 1;
pub const KV_COMPUTE_FAST: u32 = 2;
pub const KV_RUNTIME_IGNORE_ENVIRONMENT: u32 = 1;
pub const KV_RUNTIME_NO_SEARCH: u32 = 2;
pub const KV_RUNTIME_ALLOW_UNTRUSTED: u32 = 4;
pub const KV_ENTRY_PLUGIN: u32 = 1;
pub const KV_ENTRY_BUILT_IN: u32 = 2;
pub const KV_ENTRY_DIRECTORY: u32 = 3;
pub const KV_DEVICE_CPU: u32 = 1;
pub const KV_DEVICE_GPU: u32 = 2;
pub const KV_DEVICE_INTEGRATED_GPU: u32 = 3;
pub const KV_DEVICE_SOFTWARE: u32 = 4;
pub const KV_DEVICE_OTHER: u32 = 5;
pub const KV_MODEL_MAP_FILE: u32 = 1;
pub const KV_MODEL_BORROW_MEMORY: u32 = 2;
pub const KV_METADATA_INTEGER: u32 = 1;
pub const KV_METADATA_FLOAT: u32 = 2;
pub const KV_METADATA_BOOL: u32 = 3;
pub const KV_METADATA_STRING: u32 = 4;
pub const KV_METADATA_ARRAY: u32 = 5;
pub const KV_NORM_RMS: u32 = 0;
pub const KV_NORM_NONE: u32 = 1;
pub const KV_ROPE_NONE: u32 = 0;
pub const KV_ROPE_ADJACENT: u32 = 1;
pub const KV_ROPE_HALVES: u32 = 2;
pub const KV_ACTIVATION_SILU: u32 = 0;
pub const KV_ACTIVATION_GELU: u32 = 1;
pub const KV_ACTIVATION_GELU_TANH: u32 = 2;
pub const KV_ACTIVATION_RELU: u32 = 3;
pub const KV_TOKENIZE_ADD_SPECIAL: u32 = 1;
pub const KV_TOKENIZE_PARSE_SPECIAL: u32 = 2;
pub const KV_TEXT_SPECIAL: u32 = 1;
pub const KV_CONTEXT_POISON: u32 = 1;
pub const KV_OUTPUT_LAST: u32 = 0;
pub const KV_OUTPUT_NONE: u32 = 1;
pub const KV_OUTPUT_ALL: u32 = 2;
pub const KV_CACHE_K: u32 = 1;
pub const KV_CACHE_V: u32 = 2;
pub const KV_VERSION_MAJOR: u32 = 0;
pub const KV_VERSION_MINOR: u32 = 1;
pub const KV_VERSION_PATCH: u32 = 0;
pub const KV_DEFAULT_SEQUENCE: kv_sequence = 0;
pub const KV_TOKEN_ROW: i32 = -1;

#[repr(C)]
pub struct kv_runtime {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_model {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_model_builder {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_context {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_tokenizer {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_text_stream {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_sampler {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_cancel {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct kv_backend_report {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_error {
    pub struct_size: u32,
    pub code: kv_status,
    pub message: [c_char; 504],
}

impl kv_error {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_allocator {
    pub user: *mut c_void,
    pub alloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    pub release: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_runtime_options {
    pub struct_size: u32,
    pub flags: u32,
    pub log: kv_log_fn,
    pub log_user: *mut c_void,
    pub allocator: *const kv_allocator,
    pub parallel_for: kv_parallel_for_fn,
    pub parallel_user: *mut c_void,
    pub destroyed: Option<unsafe extern "C" fn(*mut c_void)>,
    pub destroyed_user: *mut c_void,
    pub backend_path: *const c_char,
}

impl kv_runtime_options {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_backend_entry {
    pub struct_size: u32,
    pub status: kv_status,
    pub name: *const c_char,
    pub path: *const c_char,
    pub version: *const c_char,
    pub reason: *const c_char,
    pub device_count: u32,
    pub kind: u32,
    pub origin: *const c_char,
}

impl kv_backend_entry {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_device_info {
    pub struct_size: u32,
    pub kind: u32,
    pub name: *const c_char,
    pub driver: *const c_char,
    pub memory_total: u64,
    pub memory_available: u64,
}

impl kv_device_info {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_model_options {
    pub struct_size: u32,
    pub flags: u32,
    pub progress: kv_progress_fn,
    pub progress_user: *mut c_void,
    pub cancel: *const kv_cancel,
}

impl kv_model_options {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_model_info {
    pub struct_size: u32,
    pub layers: u32,
    pub architecture: *const c_char,
    pub name: *const c_char,
    pub dim: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub v_head_dim: u32,
    pub ffn_dim: u32,
    pub vocab: u32,
    pub context_length: u32,
    pub parameters: u64,
    pub tensor_bytes: u64,
    pub tensors: u32,
    pub metadata: u32,
}

impl kv_model_info {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_metadata {
    pub struct_size: u32,
    pub kind: u32,
    pub key: *const c_char,
    pub key_length: u64,
    pub integer: i64,
    pub real: f64,
    pub text: *const c_char,
    pub length: u64,
    pub count: u64,
    pub element_kind: u32,
    pub is_unsigned: u32,
}

impl kv_metadata {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_tensor_info {
    pub struct_size: u32,
    pub r#type: u32,
    pub name: *const c_char,
    pub shape: [u64; 4],
    pub bytes: u64,
}

impl kv_tensor_info {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_model_config {
    pub struct_size: u32,
    pub layers: u32,
    pub dim: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub ffn_dim: u32,
    pub vocab: u32,
    pub context_length: u32,
    pub norm: u32,
    pub norm_epsilon: f32,
    pub activation: u32,
    pub attention_scale: f32,
    pub rope: u32,
    pub rope_dims: u32,
    pub rope_theta: f32,
    pub no_residual: u32,
    pub no_output_projection: u32,
    pub window: u32,
    pub reserved: u32,
}

impl kv_model_config {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_tokenizer_info {
    pub struct_size: u32,
    pub vocab: u32,
    pub kind: *const c_char,
    pub pre: *const c_char,
    pub bos: i32,
    pub eos: i32,
    pub eot: i32,
    pub unk: i32,
    pub add_bos: u32,
    pub add_eos: u32,
}

impl kv_tokenizer_info {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_context_options {
    pub struct_size: u32,
    pub flags: u32,
    pub device: *const c_char,
    pub variant: *const c_char,
    pub max_tokens: u64,
    pub memory_budget: u64,
    pub k_type: u32,
    pub v_type: u32,
    pub page_tokens: u32,
    pub threads: u32,
    pub compute_mode: u32,
    pub max_batch_tokens: u32,
    pub max_sequences: u32,
    pub reserved: u32,
    pub load: *const kv_model_options,
}

impl kv_context_options {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_memory_plan {
    pub struct_size: u32,
    pub page_tokens: u32,
    pub weight_bytes: u64,
    pub cache_bytes: u64,
    pub scratch_bytes: u64,
    pub bytes_per_token: u64,
    pub max_tokens: u64,
}

impl kv_memory_plan {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_context_info {
    pub struct_size: u32,
    pub page_tokens: u32,
    pub backend: *const c_char,
    pub device: *const c_char,
    pub variant: *const c_char,
    pub choice: *const c_char,
    pub max_tokens: u64,
    pub free_tokens: u64,
    pub k_type: u32,
    pub v_type: u32,
    pub compute_mode: u32,
    pub deterministic: u32,
    pub max_batch_tokens: u32,
    pub sequences: u32,
    pub row_width: u32,
    pub threads: u32,
    pub cache_bytes: u64,
    pub weight_bytes: u64,
    pub scratch_bytes: u64,
    pub tokens_computed: u64,
    pub projections: u64,
    pub projections_avoided: u64,
    pub pages_used: u64,
    pub pages_shared: u64,
}

impl kv_context_info {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_step_options {
    pub struct_size: u32,
    pub outputs: u32,
    pub cancel: *const kv_cancel,
    pub progress: kv_progress_fn,
    pub progress_user: *mut c_void,
    pub row: kv_row_fn,
    pub row_user: *mut c_void,
    pub into: *mut f32,
    pub into_floats: u64,
    pub keep_chunks: u32,
    pub reserved: u32,
}

impl kv_step_options {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_step_result {
    pub struct_size: u32,
    pub status: kv_status,
    pub rows: *const f32,
    pub width: u32,
    pub reserved: u32,
    pub length: u64,
    pub computed: u64,
    pub reused: u64,
    pub message: *const c_char,
}

impl kv_step_result {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_decode_input {
    pub sequence: kv_sequence,
    pub token: i32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_step_input {
    pub struct_size: u32,
    pub reserved: u32,
    pub sequence: kv_sequence,
    pub tokens: *const i32,
    pub rows: *const f32,
    pub count: u64,
}

impl kv_step_input {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_trace_record {
    pub struct_size: u32,
    pub layer: u32,
    pub name: *const c_char,
    pub sequence: kv_sequence,
    pub position: u64,
    pub head: u32,
    pub rows: u32,
    pub width: u32,
    pub reserved: u32,
    pub first_position: u64,
    pub data: *const f32,
}

impl kv_trace_record {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_logit_bias {
    pub token: i32,
    pub bias: f32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_sampler_options {
    pub struct_size: u32,
    pub temperature: f32,
    pub top_k: u32,
    pub use_top_p: u32,
    pub top_p: f32,
    pub min_p: f32,
    pub repetition_penalty: f32,
    pub frequency_penalty: f32,
    pub presence_penalty: f32,
    pub penalty_last: u32,
    pub seed: u64,
    pub bias: *const kv_logit_bias,
    pub bias_count: u64,
    pub hook: kv_logits_fn,
    pub hook_user: *mut c_void,
    pub log_probabilities: u32,
    pub reserved: u32,
}

impl kv_sampler_options {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_candidate {
    pub token: i32,
    pub log_probability: f32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kv_sample {
    pub struct_size: u32,
    pub token: i32,
    pub log_probability: f32,
    pub top_capacity: u32,
    pub top: *mut kv_candidate,
    pub top_count: u32,
    pub reserved: u32,
}

impl kv_sample {
    /// All zero (which means default), the size set.
    pub fn sized() -> Self {
        // SAFETY: integers, floats and nullable pointers; all may be zero.
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

extern "C" {
    pub fn kv_version() -> u32;
    pub fn kv_status_name(status: kv_status) -> *const c_char;
    pub fn kv_type_name(r#type: u32) -> *const c_char;
    pub fn kv_runtime_create(options: *const kv_runtime_options, out: *mut *mut kv_runtime, error: *mut kv_error) -> kv_status;
    pub fn kv_runtime_release(runtime: *mut kv_runtime);
    pub fn kv_runtime_load_backend(runtime: *mut kv_runtime, path: *const c_char, error: *mut kv_error) -> kv_status;
    pub fn kv_backend_report_create(runtime: *mut kv_runtime, out: *mut *mut kv_backend_report, error: *mut kv_error) -> kv_status;
    pub fn kv_backend_report_release(report: *mut kv_backend_report);
    pub fn kv_backend_report_count(report: *const kv_backend_report) -> usize;
    pub fn kv_backend_report_entry(report: *const kv_backend_report, index: usize, out: *mut kv_backend_entry, error: *mut kv_error) -> kv_status;
    pub fn kv_backend_report_device(report: *const kv_backend_report, index: usize, device: u32, out: *mut kv_device_info, error: *mut kv_error) -> kv_status;
    pub fn kv_cancel_create(out: *mut *mut kv_cancel, error: *mut kv_error) -> kv_status;
    pub fn kv_cancel_set(cancel: *mut kv_cancel);
    pub fn kv_cancel_reset(cancel: *mut kv_cancel);
    pub fn kv_cancel_is_set(cancel: *const kv_cancel) -> i32;
    pub fn kv_cancel_release(cancel: *mut kv_cancel);
    pub fn kv_model_load_file(runtime: *mut kv_runtime, path: *const c_char, options: *const kv_model_options, out: *mut *mut kv_model, error: *mut kv_error) -> kv_status;
    pub fn kv_model_load_memory(runtime: *mut kv_runtime, data: *const c_void, size: usize, options: *const kv_model_options, out: *mut *mut kv_model, error: *mut kv_error) -> kv_status;
    pub fn kv_model_release(model: *mut kv_model);
    pub fn kv_model_prepare(model: *mut kv_model, device: *const c_char, options: *const kv_model_options, error: *mut kv_error) -> kv_status;
    pub fn kv_model_get_info(model: *const kv_model, out: *mut kv_model_info, error: *mut kv_error) -> kv_status;
    pub fn kv_model_metadata_at(model: *const kv_model, index: usize, out: *mut kv_metadata, error: *mut kv_error) -> kv_status;
    pub fn kv_model_metadata_find(model: *const kv_model, key: *const c_char, out: *mut kv_metadata, error: *mut kv_error) -> kv_status;
    pub fn kv_model_metadata_element(model: *const kv_model, key: *const c_char, index: u64, out: *mut kv_metadata, error: *mut kv_error) -> kv_status;
    pub fn kv_model_tensor_at(model: *const kv_model, index: usize, out: *mut kv_tensor_info, error: *mut kv_error) -> kv_status;
    pub fn kv_model_builder_create(runtime: *mut kv_runtime, config: *const kv_model_config, out: *mut *mut kv_model_builder, error: *mut kv_error) -> kv_status;
    pub fn kv_model_builder_add(builder: *mut kv_model_builder, name: *const c_char, r#type: u32, rows: u32, width: u32, data: *const c_void, bytes: usize, error: *mut kv_error) -> kv_status;
    pub fn kv_model_builder_finish(builder: *mut kv_model_builder, out: *mut *mut kv_model, error: *mut kv_error) -> kv_status;
    pub fn kv_model_builder_release(builder: *mut kv_model_builder);
    pub fn kv_model_tokenizer(model: *const kv_model) -> *const kv_tokenizer;
    pub fn kv_tokenizer_get_info(tokenizer: *const kv_tokenizer, out: *mut kv_tokenizer_info, error: *mut kv_error) -> kv_status;
    pub fn kv_tokenize(tokenizer: *const kv_tokenizer, text: *const c_char, length: usize, flags: u32, tokens: *mut i32, capacity: usize, count: *mut usize, error: *mut kv_error) -> kv_status;
    pub fn kv_token_text(tokenizer: *const kv_tokenizer, token: i32, flags: u32, text: *mut c_char, capacity: usize, length: *mut usize, error: *mut kv_error) -> kv_status;
    pub fn kv_detokenize(tokenizer: *const kv_tokenizer, tokens: *const i32, count: usize, flags: u32, text: *mut c_char, capacity: usize, length: *mut usize, error: *mut kv_error) -> kv_status;
    pub fn kv_token_ends_generation(tokenizer: *const kv_tokenizer, token: i32) -> i32;
    pub fn kv_text_stream_create(tokenizer: *const kv_tokenizer, flags: u32, out: *mut *mut kv_text_stream, error: *mut kv_error) -> kv_status;
    pub fn kv_text_stream_push(stream: *mut kv_text_stream, token: i32, text: *mut *const c_char, length: *mut usize, error: *mut kv_error) -> kv_status;
    pub fn kv_text_stream_flush(stream: *mut kv_text_stream, text: *mut *const c_char, length: *mut usize, error: *mut kv_error) -> kv_status;
    pub fn kv_text_stream_release(stream: *mut kv_text_stream);
    pub fn kv_context_plan(model: *mut kv_model, options: *const kv_context_options, out: *mut kv_memory_plan, error: *mut kv_error) -> kv_status;
    pub fn kv_context_create(model: *mut kv_model, options: *const kv_context_options, out: *mut *mut kv_context, error: *mut kv_error) -> kv_status;
    pub fn kv_context_release(context: *mut kv_context);
    pub fn kv_context_get_info(context: *const kv_context, out: *mut kv_context_info, error: *mut kv_error) -> kv_status;
    pub fn kv_sequence_create(context: *mut kv_context, out: *mut kv_sequence, error: *mut kv_error) -> kv_status;
    pub fn kv_sequence_fork(context: *mut kv_context, sequence: kv_sequence, length: u64, out: *mut kv_sequence, error: *mut kv_error) -> kv_status;
    pub fn kv_sequence_truncate(context: *mut kv_context, sequence: kv_sequence, length: u64, error: *mut kv_error) -> kv_status;
    pub fn kv_sequence_release(context: *mut kv_context, sequence: kv_sequence, error: *mut kv_error) -> kv_status;
    pub fn kv_sequence_length(context: *const kv_context, sequence: kv_sequence, out: *mut u64, error: *mut kv_error) -> kv_status;
    pub fn kv_sequence_tokens(context: *const kv_context, sequence: kv_sequence, first: u64, count: usize, tokens: *mut i32, error: *mut kv_error) -> kv_status;
    pub fn kv_prefill(context: *mut kv_context, sequence: kv_sequence, tokens: *const i32, count: usize, options: *const kv_step_options, result: *mut kv_step_result, error: *mut kv_error) -> kv_status;
    pub fn kv_decode_step(context: *mut kv_context, inputs: *const kv_decode_input, count: usize, options: *const kv_step_options, results: *mut kv_step_result, error: *mut kv_error) -> kv_status;
    pub fn kv_step(context: *mut kv_context, inputs: *const kv_step_input, count: usize, options: *const kv_step_options, results: *mut kv_step_result, error: *mut kv_error) -> kv_status;
    pub fn kv_cache_read(context: *mut kv_context, sequence: kv_sequence, layer: u32, what: u32, first: u64, count: u64, out: *mut f32, floats: u64, error: *mut kv_error) -> kv_status;
    pub fn kv_context_set_trace(context: *mut kv_context, trace: kv_trace_fn, user: *mut c_void, error: *mut kv_error) -> kv_status;
    pub fn kv_sampler_create(options: *const kv_sampler_options, out: *mut *mut kv_sampler, error: *mut kv_error) -> kv_status;
    pub fn kv_sampler_release(sampler: *mut kv_sampler);
    pub fn kv_sampler_sample(sampler: *mut kv_sampler, logits: *const f32, count: u32, out: *mut kv_sample, error: *mut kv_error) -> kv_status;
    pub fn kv_sampler_accept(sampler: *mut kv_sampler, token: i32, error: *mut kv_error) -> kv_status;
    pub fn kv_sampler_reset(sampler: *mut kv_sampler, seed: u64, error: *mut kv_error) -> kv_status;
}
