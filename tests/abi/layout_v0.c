/* SPDX-License-Identifier: MIT
 *
 * The layout of every public struct, as of the draft v0. Compiling this file is the test. Lines are added when structs
 * grow and never edited, except while the backend ABI is a draft: then KVB_ABI_DRAFT changes with it. Constants are in
 * constants_v0.c.
 */
#include "kvasir/backend.h"
#include "kvasir/kvasir.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, member, bytes) _Static_assert(offsetof(type, member) == (bytes), "offset of " #type "." #member)
#define SLOT(member, index) \
  _Static_assert(offsetof(kvb_api, member) == (index) * sizeof(void*), "slot of kvb_api." #member)

#if UINTPTR_MAX != UINT64_MAX
#error "the layout is pinned for 64-bit machines"
#endif

/* ---- types.h ---- */

SIZE(kv_error, 512);
AT(kv_error, struct_size, 0);
AT(kv_error, code, 4);
AT(kv_error, message, 8);

SIZE(kv_allocator, 24);
AT(kv_allocator, user, 0);
AT(kv_allocator, alloc, 8);
AT(kv_allocator, release, 16);

/* ---- kvasir.h ---- */

SIZE(kv_runtime_options, 72);
AT(kv_runtime_options, struct_size, 0);
AT(kv_runtime_options, flags, 4);
AT(kv_runtime_options, log, 8);
AT(kv_runtime_options, log_user, 16);
AT(kv_runtime_options, allocator, 24);
AT(kv_runtime_options, parallel_for, 32);
AT(kv_runtime_options, parallel_user, 40);
AT(kv_runtime_options, destroyed, 48);
AT(kv_runtime_options, destroyed_user, 56);
AT(kv_runtime_options, backend_path, 64);

SIZE(kv_backend_entry, 56);
AT(kv_backend_entry, struct_size, 0);
AT(kv_backend_entry, status, 4);
AT(kv_backend_entry, name, 8);
AT(kv_backend_entry, path, 16);
AT(kv_backend_entry, version, 24);
AT(kv_backend_entry, reason, 32);
AT(kv_backend_entry, device_count, 40);
AT(kv_backend_entry, kind, 44);
AT(kv_backend_entry, origin, 48);

SIZE(kv_device_info, 40);
AT(kv_device_info, struct_size, 0);
AT(kv_device_info, kind, 4);
AT(kv_device_info, name, 8);
AT(kv_device_info, driver, 16);
AT(kv_device_info, memory_total, 24);
AT(kv_device_info, memory_available, 32);

SIZE(kv_model_options, 32);
AT(kv_model_options, struct_size, 0);
AT(kv_model_options, flags, 4);
AT(kv_model_options, progress, 8);
AT(kv_model_options, progress_user, 16);
AT(kv_model_options, cancel, 24);

SIZE(kv_model_info, 80);
AT(kv_model_info, struct_size, 0);
AT(kv_model_info, layers, 4);
AT(kv_model_info, architecture, 8);
AT(kv_model_info, name, 16);
AT(kv_model_info, dim, 24);
AT(kv_model_info, heads, 28);
AT(kv_model_info, kv_heads, 32);
AT(kv_model_info, head_dim, 36);
AT(kv_model_info, v_head_dim, 40);
AT(kv_model_info, ffn_dim, 44);
AT(kv_model_info, vocab, 48);
AT(kv_model_info, context_length, 52);
AT(kv_model_info, parameters, 56);
AT(kv_model_info, tensor_bytes, 64);
AT(kv_model_info, tensors, 72);
AT(kv_model_info, metadata, 76);

SIZE(kv_metadata, 72);
AT(kv_metadata, struct_size, 0);
AT(kv_metadata, kind, 4);
AT(kv_metadata, key, 8);
AT(kv_metadata, key_length, 16);
AT(kv_metadata, integer, 24);
AT(kv_metadata, real, 32);
AT(kv_metadata, text, 40);
AT(kv_metadata, length, 48);
AT(kv_metadata, count, 56);
AT(kv_metadata, element_kind, 64);
AT(kv_metadata, is_unsigned, 68);

SIZE(kv_tensor_info, 56);
AT(kv_tensor_info, struct_size, 0);
AT(kv_tensor_info, type, 4);
AT(kv_tensor_info, name, 8);
AT(kv_tensor_info, shape, 16);
AT(kv_tensor_info, bytes, 48);

SIZE(kv_model_config, 80);
AT(kv_model_config, struct_size, 0);
AT(kv_model_config, layers, 4);
AT(kv_model_config, dim, 8);
AT(kv_model_config, heads, 12);
AT(kv_model_config, kv_heads, 16);
AT(kv_model_config, head_dim, 20);
AT(kv_model_config, ffn_dim, 24);
AT(kv_model_config, vocab, 28);
AT(kv_model_config, context_length, 32);
AT(kv_model_config, norm, 36);
AT(kv_model_config, norm_epsilon, 40);
AT(kv_model_config, activation, 44);
AT(kv_model_config, attention_scale, 48);
AT(kv_model_config, rope, 52);
AT(kv_model_config, rope_dims, 56);
AT(kv_model_config, rope_theta, 60);
AT(kv_model_config, no_residual, 64);
AT(kv_model_config, no_output_projection, 68);
AT(kv_model_config, window, 72);
AT(kv_model_config, reserved, 76);

SIZE(kv_tokenizer_info, 48);
AT(kv_tokenizer_info, struct_size, 0);
AT(kv_tokenizer_info, vocab, 4);
AT(kv_tokenizer_info, kind, 8);
AT(kv_tokenizer_info, pre, 16);
AT(kv_tokenizer_info, bos, 24);
AT(kv_tokenizer_info, eos, 28);
AT(kv_tokenizer_info, eot, 32);
AT(kv_tokenizer_info, unk, 36);
AT(kv_tokenizer_info, add_bos, 40);
AT(kv_tokenizer_info, add_eos, 44);

SIZE(kv_context_options, 80);
AT(kv_context_options, struct_size, 0);
AT(kv_context_options, flags, 4);
AT(kv_context_options, device, 8);
AT(kv_context_options, variant, 16);
AT(kv_context_options, max_tokens, 24);
AT(kv_context_options, memory_budget, 32);
AT(kv_context_options, k_type, 40);
AT(kv_context_options, v_type, 44);
AT(kv_context_options, page_tokens, 48);
AT(kv_context_options, threads, 52);
AT(kv_context_options, compute_mode, 56);
AT(kv_context_options, max_batch_tokens, 60);
AT(kv_context_options, max_sequences, 64);
AT(kv_context_options, reserved, 68);
AT(kv_context_options, load, 72);

SIZE(kv_memory_plan, 48);
AT(kv_memory_plan, struct_size, 0);
AT(kv_memory_plan, page_tokens, 4);
AT(kv_memory_plan, weight_bytes, 8);
AT(kv_memory_plan, cache_bytes, 16);
AT(kv_memory_plan, scratch_bytes, 24);
AT(kv_memory_plan, bytes_per_token, 32);
AT(kv_memory_plan, max_tokens, 40);

SIZE(kv_context_info, 152);
AT(kv_context_info, struct_size, 0);
AT(kv_context_info, page_tokens, 4);
AT(kv_context_info, backend, 8);
AT(kv_context_info, device, 16);
AT(kv_context_info, variant, 24);
AT(kv_context_info, choice, 32);
AT(kv_context_info, max_tokens, 40);
AT(kv_context_info, free_tokens, 48);
AT(kv_context_info, k_type, 56);
AT(kv_context_info, v_type, 60);
AT(kv_context_info, compute_mode, 64);
AT(kv_context_info, deterministic, 68);
AT(kv_context_info, max_batch_tokens, 72);
AT(kv_context_info, sequences, 76);
AT(kv_context_info, row_width, 80);
AT(kv_context_info, threads, 84);
AT(kv_context_info, cache_bytes, 88);
AT(kv_context_info, weight_bytes, 96);
AT(kv_context_info, scratch_bytes, 104);
AT(kv_context_info, tokens_computed, 112);
AT(kv_context_info, projections, 120);
AT(kv_context_info, projections_avoided, 128);
AT(kv_context_info, pages_used, 136);
AT(kv_context_info, pages_shared, 144);

SIZE(kv_step_options, 72);
AT(kv_step_options, struct_size, 0);
AT(kv_step_options, outputs, 4);
AT(kv_step_options, cancel, 8);
AT(kv_step_options, progress, 16);
AT(kv_step_options, progress_user, 24);
AT(kv_step_options, row, 32);
AT(kv_step_options, row_user, 40);
AT(kv_step_options, into, 48);
AT(kv_step_options, into_floats, 56);
AT(kv_step_options, keep_chunks, 64);
AT(kv_step_options, reserved, 68);

SIZE(kv_step_result, 56);
AT(kv_step_result, struct_size, 0);
AT(kv_step_result, status, 4);
AT(kv_step_result, rows, 8);
AT(kv_step_result, width, 16);
AT(kv_step_result, reserved, 20);
AT(kv_step_result, length, 24);
AT(kv_step_result, computed, 32);
AT(kv_step_result, reused, 40);
AT(kv_step_result, message, 48);

SIZE(kv_decode_input, 16);
AT(kv_decode_input, sequence, 0);
AT(kv_decode_input, token, 8);
AT(kv_decode_input, reserved, 12);

SIZE(kv_step_input, 40);
AT(kv_step_input, struct_size, 0);
AT(kv_step_input, reserved, 4);
AT(kv_step_input, sequence, 8);
AT(kv_step_input, tokens, 16);
AT(kv_step_input, rows, 24);
AT(kv_step_input, count, 32);

SIZE(kv_trace_record, 64);
AT(kv_trace_record, struct_size, 0);
AT(kv_trace_record, layer, 4);
AT(kv_trace_record, name, 8);
AT(kv_trace_record, sequence, 16);
AT(kv_trace_record, position, 24);
AT(kv_trace_record, head, 32);
AT(kv_trace_record, rows, 36);
AT(kv_trace_record, width, 40);
AT(kv_trace_record, reserved, 44);
AT(kv_trace_record, first_position, 48);
AT(kv_trace_record, data, 56);

SIZE(kv_logit_bias, 8);
AT(kv_logit_bias, token, 0);
AT(kv_logit_bias, bias, 4);

SIZE(kv_sampler_options, 88);
AT(kv_sampler_options, struct_size, 0);
AT(kv_sampler_options, temperature, 4);
AT(kv_sampler_options, top_k, 8);
AT(kv_sampler_options, use_top_p, 12);
AT(kv_sampler_options, top_p, 16);
AT(kv_sampler_options, min_p, 20);
AT(kv_sampler_options, repetition_penalty, 24);
AT(kv_sampler_options, frequency_penalty, 28);
AT(kv_sampler_options, presence_penalty, 32);
AT(kv_sampler_options, penalty_last, 36);
AT(kv_sampler_options, seed, 40);
AT(kv_sampler_options, bias, 48);
AT(kv_sampler_options, bias_count, 56);
AT(kv_sampler_options, hook, 64);
AT(kv_sampler_options, hook_user, 72);
AT(kv_sampler_options, log_probabilities, 80);
AT(kv_sampler_options, reserved, 84);

SIZE(kv_candidate, 8);
AT(kv_candidate, token, 0);
AT(kv_candidate, log_probability, 4);

SIZE(kv_sample, 32);
AT(kv_sample, struct_size, 0);
AT(kv_sample, token, 4);
AT(kv_sample, log_probability, 8);
AT(kv_sample, top_capacity, 12);
AT(kv_sample, top, 16);
AT(kv_sample, top_count, 24);
AT(kv_sample, reserved, 28);

/* ---- ops.h ---- */

SIZE(kvb_value, 32);
AT(kvb_value, kind, 0);
AT(kvb_value, type, 4);
AT(kvb_value, rows, 8);
AT(kvb_value, width, 12);
AT(kvb_value, depth, 16);
AT(kvb_value, reserved, 20);
AT(kvb_value, place, 24);

SIZE(kvb_op, 64);
AT(kvb_op, code, 0);
AT(kvb_op, group, 2);
AT(kvb_op, layer, 4);
AT(kvb_op, flags, 6);
AT(kvb_op, in, 8);
AT(kvb_op, out, 32);
AT(kvb_op, param, 40);

SIZE(kvb_rope, 16);
AT(kvb_rope, pairing, 0);
AT(kvb_rope, first, 4);
AT(kvb_rope, pairs, 8);
AT(kvb_rope, magnitude, 12);

/* ---- backend.h ---- */

SIZE(kvb_host, 64);
AT(kvb_host, struct_size, 0);
AT(kvb_host, abi_version, 4);
AT(kvb_host, log, 8);
AT(kvb_host, log_user, 16);
AT(kvb_host, allocator, 24);
AT(kvb_host, parallel_for, 48);
AT(kvb_host, parallel_user, 56);

SIZE(kvb_device_info, 280);
AT(kvb_device_info, struct_size, 0);
AT(kvb_device_info, kind, 4);
AT(kvb_device_info, name, 8);
AT(kvb_device_info, driver, 136);
AT(kvb_device_info, memory_total, 264);
AT(kvb_device_info, memory_available, 272);

SIZE(kvb_device_options, 16);
AT(kvb_device_options, struct_size, 0);
AT(kvb_device_options, reserved, 4);
AT(kvb_device_options, variant, 8);

SIZE(kvb_weight_desc, 56);
AT(kvb_weight_desc, struct_size, 0);
AT(kvb_weight_desc, type, 4);
AT(kvb_weight_desc, depth, 8);
AT(kvb_weight_desc, rows, 12);
AT(kvb_weight_desc, width, 16);
AT(kvb_weight_desc, flags, 20);
AT(kvb_weight_desc, data, 24);
AT(kvb_weight_desc, bytes, 32);
AT(kvb_weight_desc, release, 40);
AT(kvb_weight_desc, release_user, 48);

SIZE(kvb_cache_group, 32);
AT(kvb_cache_group, k_type, 0);
AT(kvb_cache_group, v_type, 4);
AT(kvb_cache_group, kv_heads, 8);
AT(kvb_cache_group, k_dim, 12);
AT(kvb_cache_group, v_dim, 16);
AT(kvb_cache_group, window, 20);
AT(kvb_cache_group, page_tokens, 24);
AT(kvb_cache_group, flags, 28);

SIZE(kvb_cache_desc, 32);
AT(kvb_cache_desc, struct_size, 0);
AT(kvb_cache_desc, layers, 4);
AT(kvb_cache_desc, group_count, 8);
AT(kvb_cache_desc, group_stride, 12);
AT(kvb_cache_desc, groups, 16);
AT(kvb_cache_desc, layer_group, 24);

SIZE(kvb_cache_rows, 32);
AT(kvb_cache_rows, struct_size, 0);
AT(kvb_cache_rows, layer, 4);
AT(kvb_cache_rows, what, 8);
AT(kvb_cache_rows, format, 12);
AT(kvb_cache_rows, page, 16);
AT(kvb_cache_rows, first, 20);
AT(kvb_cache_rows, count, 24);
AT(kvb_cache_rows, reserved, 28);

SIZE(kvb_cache_move, 24);
AT(kvb_cache_move, from_page, 0);
AT(kvb_cache_move, from_row, 4);
AT(kvb_cache_move, to_page, 8);
AT(kvb_cache_move, to_row, 12);
AT(kvb_cache_move, count, 16);
AT(kvb_cache_move, delta, 20);

SIZE(kvb_program_desc, 88);
AT(kvb_program_desc, struct_size, 0);
AT(kvb_program_desc, flags, 4);
AT(kvb_program_desc, max_tokens, 8);
AT(kvb_program_desc, max_outputs, 12);
AT(kvb_program_desc, max_sequences, 16);
AT(kvb_program_desc, max_length, 20);
AT(kvb_program_desc, value_count, 24);
AT(kvb_program_desc, value_stride, 28);
AT(kvb_program_desc, op_count, 32);
AT(kvb_program_desc, op_stride, 36);
AT(kvb_program_desc, values, 40);
AT(kvb_program_desc, ops, 48);
AT(kvb_program_desc, blob, 56);
AT(kvb_program_desc, blob_bytes, 64);
AT(kvb_program_desc, scratch_bytes, 72);
AT(kvb_program_desc, compute_mode, 80);
AT(kvb_program_desc, reserved, 84);

SIZE(kvb_memory, 24);
AT(kvb_memory, struct_size, 0);
AT(kvb_memory, reserved, 4);
AT(kvb_memory, device_bytes, 8);
AT(kvb_memory, host_bytes, 16);

SIZE(kvb_page_table, 16);
AT(kvb_page_table, pages, 0);
AT(kvb_page_table, pages_per_sequence, 8);
AT(kvb_page_table, reserved, 12);

SIZE(kvb_trace_record, 40);
AT(kvb_trace_record, struct_size, 0);
AT(kvb_trace_record, what, 4);
AT(kvb_trace_record, op, 8);
AT(kvb_trace_record, token, 12);
AT(kvb_trace_record, head, 16);
AT(kvb_trace_record, rows, 20);
AT(kvb_trace_record, width, 24);
AT(kvb_trace_record, first_position, 28);
AT(kvb_trace_record, data, 32);

SIZE(kvb_step, 128);
AT(kvb_step, struct_size, 0);
AT(kvb_step, token_count, 4);
AT(kvb_step, sequence_count, 8);
AT(kvb_step, output_count, 12);
AT(kvb_step, tokens, 16);
AT(kvb_step, embeddings, 24);
AT(kvb_step, positions, 32);
AT(kvb_step, sequence_of, 40);
AT(kvb_step, lengths, 48);
AT(kvb_step, tables, 56);
AT(kvb_step, output_rows, 64);
AT(kvb_step, stop, 72);
AT(kvb_step, trace, 80);
AT(kvb_step, trace_user, 88);
AT(kvb_step, embedding_count, 96);
AT(kvb_step, group_count, 100);
AT(kvb_step, reserved_components, 104);
AT(kvb_step, reserved_parents, 112);
AT(kvb_step, reserved_hidden, 120);

SIZE(kvb_queue_options, 8);
AT(kvb_queue_options, struct_size, 0);
AT(kvb_queue_options, threads, 4);

/* In pointers from the start; struct_size and abi_version share slot 0. */
SIZE(kvb_api, 32 * sizeof(void*));
AT(kvb_api, struct_size, 0);
AT(kvb_api, abi_version, 4);
SLOT(name, 1);
SLOT(version, 2);
SLOT(instance_create, 3);
SLOT(instance_destroy, 4);
SLOT(device_count, 5);
SLOT(device_info, 6);
SLOT(device_open, 7);
SLOT(device_close, 8);
SLOT(device_query, 9);
SLOT(device_variant, 10);
SLOT(weight_memory, 11);
SLOT(weight_create, 12);
SLOT(weight_destroy, 13);
SLOT(cache_memory, 14);
SLOT(cache_create, 15);
SLOT(cache_destroy, 16);
SLOT(cache_resize, 17);
SLOT(cache_copy_rows, 18);
SLOT(cache_poison_page, 19);
SLOT(cache_read_rows, 20);
SLOT(cache_write_rows, 21);
SLOT(cache_move_rows, 22);
SLOT(program_check, 23);
SLOT(program_memory, 24);
SLOT(program_compile, 25);
SLOT(program_destroy, 26);
SLOT(queue_create, 27);
SLOT(queue_destroy, 28);
SLOT(queue_submit, 29);
SLOT(queue_wait, 30);
SLOT(extension, 31);
