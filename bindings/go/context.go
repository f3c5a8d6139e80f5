// SPDX-License-Identifier: MIT
//
// Contexts and samplers. Output rows are written into Go memory by the call itself, so that no goroutine reads memory
// that the next call changes.

package kvasir

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"unsafe"
)

// Sequence of a context; 0 exists from the start.
type Sequence uint64

// ContextOptions: zero means default.
type ContextOptions struct {
	Device         string // "cpu", "vulkan:1", "auto"
	MaxTokens      uint64
	MemoryBudget   uint64
	Threads        uint32
	ComputeMode    uint32 // 0, ComputeExact or ComputeFast
	MaxBatchTokens uint32
	MaxSequences   uint32
}

// How activations are multiplied; kvasir.h has the difference.
const (
	ComputeExact uint32 = C.KV_COMPUTE_EXACT
	ComputeFast  uint32 = C.KV_COMPUTE_FAST
)

// Context is one device's cache and the sequences in it.
type Context struct {
	mu    sync.RWMutex
	raw   *C.kv_context
	width int // floats of an output row
}

// Row is one output row that a callback sees; Values is valid during the callback.
type Row struct {
	Sequence Sequence
	Position uint64
	Values   []float32
}

// StepOptions of a call; nil means default.
type StepOptions struct {
	Progress   func(done, total uint64) // tokens, after each internal batch
	Row        func(Row)                // every token's row instead of the last one's
	KeepChunks bool                     // a cancelled call keeps the internal batches that were finished
}

// Step is what a call did with one sequence.
type Step struct {
	Status Status    // of this input; 0 is success
	Logits []float32 // of the last token; nil with StepOptions.Row or on failure
	Length uint64    // tokens the sequence holds now
}

// Input is one token for one sequence.
type Input struct {
	Sequence Sequence
	Token    int32
}

// NewContext opens the device and makes an empty cache.
func (m *Model) NewContext(options ContextOptions) (*Context, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.raw == nil {
		return nil, closed("model")
	}
	var raw C.kv_context_options
	raw.struct_size = C.uint32_t(unsafe.Sizeof(raw))
	if options.Device != "" {
		raw.device = C.CString(options.Device) // C memory, as everything that an option points to must be
		defer C.free(unsafe.Pointer(raw.device))
	}
	raw.max_tokens = C.uint64_t(options.MaxTokens)
	raw.memory_budget = C.uint64_t(options.MemoryBudget)
	raw.threads = C.uint32_t(options.Threads)
	raw.compute_mode = C.uint32_t(options.ComputeMode)
	raw.max_batch_tokens = C.uint32_t(options.MaxBatchTokens)
	raw.max_sequences = C.uint32_t(options.MaxSequences)
	var handle *C.kv_context
	err := check(func(e *C.kv_error) C.kv_status { return C.kv_context_create(m.raw, &raw, &handle, e) })
	if err != nil {
		return nil, err
	}
	var info C.kv_context_info
	info.struct_size = C.uint32_t(unsafe.Sizeof(info))
	err = check(func(e *C.kv_error) C.kv_status { return C.kv_context_get_info(handle, &info, e) })
	if err != nil {
		C.kv_context_release(handle)
		return nil, err
	}
	c := &Context{raw: handle, width: int(info.row_width)}
	runtime.SetFinalizer(c, (*Context).Close)
	return c, nil
}

// Close waits for a running call and releases the context.
func (c *Context) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	C.kv_context_release(c.raw)
	c.raw = nil
	runtime.SetFinalizer(c, nil)
}

func (c *Context) use(call func(*C.kv_error) C.kv_status) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.raw == nil {
		return closed("context")
	}
	return check(call)
}

// NewSequence makes an empty sequence.
func (c *Context) NewSequence() (Sequence, error) {
	var out C.kv_sequence
	err := c.use(func(e *C.kv_error) C.kv_status { return C.kv_sequence_create(c.raw, &out, e) })
	return Sequence(out), err
}

// Truncate keeps the first length tokens.
func (c *Context) Truncate(sequence Sequence, length uint64) error {
	return c.use(func(e *C.kv_error) C.kv_status {
		return C.kv_sequence_truncate(c.raw, C.kv_sequence(sequence), C.uint64_t(length), e)
	})
}

// Length is how many tokens a sequence holds.
func (c *Context) Length(sequence Sequence) (uint64, error) {
	var out C.uint64_t
	err := c.use(func(e *C.kv_error) C.kv_status {
		return C.kv_sequence_length(c.raw, C.kv_sequence(sequence), &out, e)
	})
	return uint64(out), err
}

// Prefill appends tokens to a sequence.
func (c *Context) Prefill(ctx context.Context, sequence Sequence, tokens []int32, options *StepOptions) (Step, error) {
	steps, err := c.step(ctx, 1, options,
		func(call C.kvgo_step, cancel *C.kv_cancel, into []float32, out []C.kv_step_result, e *C.kv_error) C.kv_status {
			return C.kvgo_prefill(c.raw, C.kv_sequence(sequence), (*C.int32_t)(first(tokens)), C.size_t(len(tokens)), call,
				cancel, (*C.float)(first(into)), C.uint64_t(len(into)), (*C.kv_step_result)(first(out)), e)
		})
	return steps[0], err
}

// Decode appends one token to each of some different sequences. The error is the first failing input's.
func (c *Context) Decode(ctx context.Context, inputs []Input, options *StepOptions) ([]Step, error) {
	raw := make([]C.kv_decode_input, len(inputs))
	for i, input := range inputs {
		raw[i].sequence = C.kv_sequence(input.Sequence)
		raw[i].token = C.int32_t(input.Token)
	}
	return c.step(ctx, len(inputs), options,
		func(call C.kvgo_step, cancel *C.kv_cancel, into []float32, out []C.kv_step_result, e *C.kv_error) C.kv_status {
			return C.kvgo_decode(c.raw, (*C.kv_decode_input)(first(raw)), C.size_t(len(raw)), call, cancel,
				(*C.float)(first(into)), C.uint64_t(len(into)), (*C.kv_step_result)(first(out)), e)
		})
}

type stepFunc func(C.kvgo_step, *C.kv_cancel, []float32, []C.kv_step_result, *C.kv_error) C.kv_status

func (c *Context) step(ctx context.Context, count int, options *StepOptions, run stepFunc) ([]Step, error) {
	steps := make([]Step, count)
	var given StepOptions
	if options != nil {
		given = *options
	}
	call, err := begin(ctx, given.Progress, given.Row)
	if err != nil {
		return steps, err
	}
	raw := C.kvgo_step{progress: call.progressHandle(), row: call.rowHandle(), outputs: C.KV_OUTPUT_LAST}
	var into []float32
	if given.Row != nil {
		raw.outputs = C.KV_OUTPUT_ALL
	} else {
		into = make([]float32, count*c.width)
	}
	if given.KeepChunks {
		raw.keep_chunks = 1
	}
	results := make([]C.kv_step_result, count)
	for i := range results {
		results[i].struct_size = C.uint32_t(unsafe.Sizeof(results[i]))
	}
	err = call.end(c.use(func(e *C.kv_error) C.kv_status { return run(raw, call.cancel, into, results, e) }))
	for i := range results {
		steps[i].Status = Status(results[i].status)
		steps[i].Length = uint64(results[i].length)
		if into != nil && results[i].width != 0 {
			steps[i].Logits = into[i*c.width : (i+1)*c.width]
		}
	}
	return steps, err
}

// SamplerOptions: zero takes the largest logit.
type SamplerOptions struct {
	Temperature float32
	TopK        uint32
	UseTopP     bool
	TopP        float32
	MinP        float32
	Seed        uint64
	Bias        map[int32]float32
}

// Sampler takes a token out of logits.
type Sampler struct {
	mu  sync.Mutex // the library does not check that one thread uses a sampler
	raw *C.kv_sampler
}

// NewSampler checks its options.
func NewSampler(options SamplerOptions) (*Sampler, error) {
	bias := make([]C.kv_logit_bias, 0, len(options.Bias))
	for token, value := range options.Bias {
		bias = append(bias, C.kv_logit_bias{token: C.int32_t(token), bias: C.float(value)})
	}
	var topP C.int32_t
	if options.UseTopP {
		topP = 1
	}
	var raw *C.kv_sampler
	err := check(func(e *C.kv_error) C.kv_status {
		return C.kvgo_sampler_create(C.float(options.Temperature), C.uint32_t(options.TopK), topP, C.float(options.TopP),
			C.float(options.MinP), C.uint64_t(options.Seed), (*C.kv_logit_bias)(first(bias)), C.size_t(len(bias)), &raw, e)
	})
	if err != nil {
		return nil, err
	}
	s := &Sampler{raw: raw}
	runtime.SetFinalizer(s, (*Sampler).Close)
	return s, nil
}

// Close releases the sampler.
func (s *Sampler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	C.kv_sampler_release(s.raw)
	s.raw = nil
	runtime.SetFinalizer(s, nil)
}

// Sample chooses a token.
func (s *Sampler) Sample(logits []float32) (int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw == nil {
		return 0, closed("sampler")
	}
	var sample C.kv_sample
	sample.struct_size = C.uint32_t(unsafe.Sizeof(sample))
	err := check(func(e *C.kv_error) C.kv_status {
		return C.kv_sampler_sample(s.raw, (*C.float)(first(logits)), C.uint32_t(len(logits)), &sample, e)
	})
	return int32(sample.token), err
}
