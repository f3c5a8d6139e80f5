// SPDX-License-Identifier: MIT
//
// Callbacks by integer handle. A panic does not pass the C code between: it stops the call and becomes its error.

package kvasir

// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// call is one running call: its cancel flag, its callbacks, and what went wrong in them.
type call struct {
	cancel   *C.kv_cancel
	handle   cgo.Handle
	progress func(done, total uint64)
	row      func(Row)
	panicked error
	stop     chan struct{}
	watcher  sync.WaitGroup
	ctx      context.Context
}

// begin makes the flag and starts the goroutine that sets it when ctx ends; end waits for that goroutine.
func begin(ctx context.Context, progress func(done, total uint64), row func(Row)) (*call, error) {
	c := &call{ctx: ctx, progress: progress, row: row}
	if err := ctx.Err(); err != nil {
		return nil, &Error{Status: StatusCancelled, Message: "cancelled before it began", cause: err}
	}
	if ctx.Done() == nil && progress == nil && row == nil {
		return c, nil
	}
	if err := check(func(e *C.kv_error) C.kv_status { return C.kv_cancel_create(&c.cancel, e) }); err != nil {
		return nil, err
	}
	c.handle = cgo.NewHandle(c)
	c.stop = make(chan struct{})
	if ctx.Done() != nil {
		c.watcher.Add(1)
		go func() {
			defer c.watcher.Done()
			select {
			case <-ctx.Done():
				C.kv_cancel_set(c.cancel)
			case <-c.stop:
			}
		}()
	}
	return c, nil
}

func (c *call) end(outcome error) error {
	if c.cancel != nil {
		close(c.stop)
		c.watcher.Wait()
		c.handle.Delete()
		C.kv_cancel_release(c.cancel)
	}
	if c.panicked != nil {
		return c.panicked
	}
	var failure *Error
	if errors.As(outcome, &failure) && failure.Status == StatusCancelled {
		failure.cause = c.ctx.Err()
	}
	return outcome
}

func (c *call) progressHandle() C.uintptr_t {
	if c.progress == nil {
		return 0
	}
	return C.uintptr_t(c.handle)
}

func (c *call) rowHandle() C.uintptr_t {
	if c.row == nil {
		return 0
	}
	return C.uintptr_t(c.handle)
}

// run runs a callback, unless one has panicked in this call.
func (c *call) run(body func()) {
	if c.panicked != nil {
		return
	}
	defer func() {
		if what := recover(); what != nil {
			c.panicked = &Error{Status: StatusCallbackPanicked, Message: fmt.Sprint("a callback panicked: ", what)}
			C.kv_cancel_set(c.cancel)
		}
	}()
	body()
}

//export kvgoProgress
func kvgoProgress(handle C.uintptr_t, done, total C.uint64_t) {
	c := cgo.Handle(handle).Value().(*call)
	c.run(func() { c.progress(uint64(done), uint64(total)) })
}

//export kvgoRow
func kvgoRow(handle C.uintptr_t, sequence C.kv_sequence, position C.uint64_t, row *C.float, width C.uint32_t) {
	c := cgo.Handle(handle).Value().(*call)
	values := unsafe.Slice((*float32)(unsafe.Pointer(row)), int(width))
	c.run(func() { c.row(Row{Sequence(sequence), uint64(position), values}) })
}

//export kvgoLog
func kvgoLog(handle C.uintptr_t, level C.int32_t, text *C.char, length C.size_t) {
	log := cgo.Handle(handle).Value().(func(int, string))
	defer func() { _ = recover() }()
	log(int(level), C.GoStringN(text, C.int(length)))
}

//export kvgoDestroyed
func kvgoDestroyed(handle C.uintptr_t) { cgo.Handle(handle).Delete() }
