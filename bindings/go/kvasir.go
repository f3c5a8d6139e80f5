// SPDX-License-Identifier: MIT

// Package kvasir turns tokens into next-token scores with libkvasir. See kvasir.h for the manual of the library.
//
// Close what you create; children keep their parents alive, so any order will do. Finalizers are a safety net only.
// A Model may be used by any goroutine. A Context runs one call at a time: others get StatusBusy. A callback that
// panics stops the call it runs in, which returns an error with StatusCallbackPanicked. Callbacks must not use the
// object whose call they run in. Cancelling the context.Context of a call stops it.
//
// Build with CGO_CFLAGS="$(pkg-config --cflags kvasir)" and CGO_LDFLAGS="$(pkg-config --libs-only-L kvasir)".
package kvasir

// #cgo LDFLAGS: -lkvasir
// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// Status is one of the library's, or StatusCallbackPanicked.
type Status int32

// Statuses that programs act on; kvasir.h has the others.
const (
	StatusCallbackPanicked Status = -1
	StatusInvalidArgument  Status = C.KV_INVALID_ARGUMENT
	StatusNotFound         Status = C.KV_NOT_FOUND
	StatusUnsupported      Status = C.KV_UNSUPPORTED
	StatusOutOfMemory      Status = C.KV_OUT_OF_MEMORY
	StatusContextFull      Status = C.KV_CONTEXT_FULL
	StatusCancelled        Status = C.KV_CANCELLED
	StatusCorrupt          Status = C.KV_CORRUPT
	StatusBusy             Status = C.KV_BUSY
	StatusBadLogits        Status = C.KV_BAD_LOGITS
)

// Flags of RuntimeOptions.
const (
	IgnoreEnvironment uint32 = C.KV_RUNTIME_IGNORE_ENVIRONMENT
	NoSearch          uint32 = C.KV_RUNTIME_NO_SEARCH
	AllowUntrusted    uint32 = C.KV_RUNTIME_ALLOW_UNTRUSTED
)

// String is "KV_CONTEXT_FULL" and so on.
func (s Status) String() string {
	if s == StatusCallbackPanicked {
		return "CALLBACK_PANICKED"
	}
	return C.GoString(C.kv_status_name(C.kv_status(s)))
}

// Error is a call that failed; errors.Is finds context.Canceled in one that its context.Context stopped.
type Error struct {
	Status  Status
	Message string
	cause   error
}

func (e *Error) Error() string { return e.Status.String() + ": " + e.Message }

// Unwrap is the error of the context.Context that stopped the call, or nil.
func (e *Error) Unwrap() error { return e.cause }

func check(call func(*C.kv_error) C.kv_status) error {
	var e C.kv_error
	e.struct_size = C.uint32_t(unsafe.Sizeof(e))
	if status := call(&e); status != C.KV_OK {
		return &Error{Status: Status(status), Message: C.GoString(&e.message[0])}
	}
	return nil
}

func closed(what string) error {
	return &Error{Status: StatusInvalidArgument, Message: "the " + what + " is closed"}
}

// RuntimeOptions: zero is silent, with plugins searched where kvasir.h says.
type RuntimeOptions struct {
	Flags       uint32
	BackendPath string                       // absolute directories, ':' between them, searched first
	Log         func(level int, text string) // any thread; must not use the package
}

// Runtime has plugins, devices and the log.
type Runtime struct {
	mu  sync.RWMutex // held for reading by calls, for writing by Close
	raw *C.kv_runtime
}

// NewRuntime opens no plugin and no device yet.
func NewRuntime(options RuntimeOptions) (*Runtime, error) {
	var path *C.char
	if options.BackendPath != "" {
		path = C.CString(options.BackendPath)
		defer C.free(unsafe.Pointer(path))
	}
	var log cgo.Handle
	if options.Log != nil {
		log = cgo.NewHandle(options.Log)
	}
	r := &Runtime{}
	var raw *C.kv_runtime
	err := check(func(e *C.kv_error) C.kv_status {
		return C.kvgo_runtime_create(C.uint32_t(options.Flags), path, C.uintptr_t(log), &raw, e)
	})
	if err != nil {
		if log != 0 {
			log.Delete() // a runtime that was not made does not report its end
		}
		return nil, err
	}
	r.raw = raw
	runtime.SetFinalizer(r, (*Runtime).Close)
	return r, nil
}

// Close releases the runtime; a second Close does nothing.
func (r *Runtime) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	C.kv_runtime_release(r.raw)
	r.raw = nil
	runtime.SetFinalizer(r, nil)
}

// LoadOptions of a model.
type LoadOptions struct {
	Progress func(done, total uint64) // bytes
}

// Model is immutable.
type Model struct {
	mu  sync.RWMutex
	raw *C.kv_model
}

// Load opens a GGUF file.
func (r *Runtime) Load(ctx context.Context, path string, options LoadOptions) (*Model, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.raw == nil {
		return nil, closed("runtime")
	}
	c, err := begin(ctx, options.Progress, nil)
	if err != nil {
		return nil, err
	}
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	var raw *C.kv_model
	err = check(func(e *C.kv_error) C.kv_status {
		return C.kvgo_load_file(r.raw, text, c.cancel, c.progressHandle(), &raw, e)
	})
	if err = c.end(err); err != nil {
		C.kv_model_release(raw) // there is one when a callback panicked at the end
		return nil, err
	}
	m := &Model{raw: raw}
	runtime.SetFinalizer(m, (*Model).Close)
	return m, nil
}

// Close releases the model; its contexts go on.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	C.kv_model_release(m.raw)
	m.raw = nil
	runtime.SetFinalizer(m, nil)
}

func (m *Model) tokenizer() (*C.kv_tokenizer, error) {
	if m.raw == nil {
		return nil, closed("model")
	}
	tokenizer := C.kv_model_tokenizer(m.raw)
	if tokenizer == nil {
		return nil, &Error{Status: StatusNotFound, Message: "the model has no tokenizer"}
	}
	return tokenizer, nil
}

// Encode gives the tokens of any bytes, with the begin token that the model asks for if special is set.
func (m *Model) Encode(text string, special bool) ([]int32, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	tokenizer, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	var flags C.uint32_t
	if special {
		flags = C.KV_TOKENIZE_ADD_SPECIAL
	}
	bytes := []byte(text)
	tokens := make([]int32, len(bytes)+2) // never more tokens than bytes, and begin and end
	var count C.size_t
	err = check(func(e *C.kv_error) C.kv_status {
		return C.kv_tokenize(tokenizer, (*C.char)(first(bytes)), C.size_t(len(bytes)), flags,
			(*C.int32_t)(first(tokens)), C.size_t(len(tokens)), &count, e)
	})
	if failure, ok := err.(*Error); ok && failure.Status == Status(C.KV_BUFFER_TOO_SMALL) {
		tokens = make([]int32, int(count))
		err = check(func(e *C.kv_error) C.kv_status {
			return C.kv_tokenize(tokenizer, (*C.char)(first(bytes)), C.size_t(len(bytes)), flags,
				(*C.int32_t)(first(tokens)), C.size_t(len(tokens)), &count, e)
		})
	}
	if err != nil {
		return nil, err
	}
	return tokens[:int(count)], nil
}

// Decode gives the bytes of tokens; special tokens are empty.
func (m *Model) Decode(tokens []int32) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	tokenizer, err := m.tokenizer()
	if err != nil {
		return "", err
	}
	text := make([]byte, 16*len(tokens)+16)
	for {
		var length C.size_t
		err = check(func(e *C.kv_error) C.kv_status {
			return C.kv_detokenize(tokenizer, (*C.int32_t)(first(tokens)), C.size_t(len(tokens)), 0,
				(*C.char)(first(text)), C.size_t(len(text)), &length, e)
		})
		if failure, ok := err.(*Error); ok && failure.Status == Status(C.KV_BUFFER_TOO_SMALL) {
			text = make([]byte, int(length))
			continue
		}
		if err != nil {
			return "", err
		}
		return string(text[:int(length)]), nil
	}
}

// EndsGeneration is true for the tokens after which a model has finished.
func (m *Model) EndsGeneration(token int32) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	tokenizer, err := m.tokenizer()
	return err == nil && C.kv_token_ends_generation(tokenizer, C.int32_t(token)) != 0
}

// first is a pointer to a slice's memory for the length of a call, NULL when there is none.
func first[T any](items []T) unsafe.Pointer {
	if len(items) == 0 {
		return nil
	}
	return unsafe.Pointer(&items[0])
}

// Version of the loaded library.
func Version() string {
	v := uint32(C.kv_version())
	return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&255, v&255)
}
