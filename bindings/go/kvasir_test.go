// SPDX-License-Identifier: MIT
//
// The border: errors, callbacks, panics, cancellation, the collector, many goroutines. The model and plugins are those
// of KVASIR_TEST_DATA and KVASIR_TEST_PLUGINS.

package kvasir

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var background = context.Background()

func open(t *testing.T, options ContextOptions) (*Model, *Context) {
	t.Helper()
	r, err := NewRuntime(RuntimeOptions{BackendPath: os.Getenv("KVASIR_TEST_PLUGINS")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Load(background, filepath.Join(os.Getenv("KVASIR_TEST_DATA"), "demo.gguf"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Close() // the model keeps it
	options.Device = "cpu"
	options.Threads = 1
	c, err := m.NewContext(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); m.Close() })
	return m, c
}

func statusOf(err error) Status {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Status
	}
	return 0
}

func expect(t *testing.T, err error, status Status) {
	t.Helper()
	if statusOf(err) != status {
		t.Fatalf("%v, expected %v", err, status)
	}
}

func largest(logits []float32) int32 {
	best := 0
	for i, x := range logits {
		if x > logits[best] {
			best = i
		}
	}
	return int32(best)
}

func TestWritesTheExpectedText(t *testing.T) {
	m, c := open(t, ContextOptions{ComputeMode: ComputeExact})
	data, err := os.ReadFile(filepath.Join(os.Getenv("KVASIR_TEST_DATA"), "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Prompts []struct {
			Prompt string
			Ids    []int32 `json:"prompt_ids"`
			Greedy []int32
			Gap    []float32 `json:"greedy_gap"`
			Text   string
		}
	}
	if err := json.Unmarshal(data, &expected); err != nil {
		t.Fatal(err)
	}
	p := expected.Prompts[0]
	tokens, err := m.Encode(p.Prompt, true)
	if err != nil || len(tokens) != len(p.Ids) {
		t.Fatal(tokens, err)
	}
	step, err := c.Prefill(background, 0, tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range p.Greedy {
		const tie = 0.02 // the two likeliest tokens are closer than f16 caches are exact
		if got := largest(step.Logits); got != want && p.Gap[i] > tie {
			t.Fatalf("token %d is %d, expected %d", i, got, want)
		}
		tokens = append(tokens, want)
		steps, err := c.Decode(background, []Input{{0, want}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		step = steps[0]
	}
	if text, err := m.Decode(tokens); err != nil || text != p.Text {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestErrorsAreSentences(t *testing.T) {
	_, c := open(t, ContextOptions{MaxTokens: 16})
	_, err := c.Prefill(background, 0, make([]int32, 100000), nil)
	expect(t, err, StatusContextFull)
	if !strings.Contains(err.Error(), "100000") {
		t.Fatal(err)
	}
	_, err = c.Prefill(background, 0, nil, nil)
	expect(t, err, StatusInvalidArgument)
	_, err = c.Prefill(background, 7, []int32{1}, nil)
	expect(t, err, StatusInvalidArgument)
	steps, err := c.Decode(background, []Input{{0, 1}, {0, -5}}, nil)
	if err == nil || len(steps) != 2 {
		t.Fatal(steps, err)
	}
	c.Close()
	c.Close()
	_, err = c.Prefill(background, 0, []int32{1}, nil)
	expect(t, err, StatusInvalidArgument)
}

func TestAnyBytesComeBack(t *testing.T) {
	m, _ := open(t, ContextOptions{})
	long := strings.Repeat("\x80", 1<<16)
	for _, text := range []string{"", "\xe2\x80", "\xf0\x9f", "\xc0\xaf", "\xed\xa0\x80", "\xff", "a\x00b", long} {
		tokens, err := m.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := m.Decode(tokens); err != nil || back != text {
			t.Fatalf("%d bytes came back as %d, %v", len(text), len(back), err)
		}
	}
}

func TestBrokenLogits(t *testing.T) {
	sampler, err := NewSampler(SamplerOptions{Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sampler.Close()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, logits := range [][]float32{{nan, 0}, {nan, nan}, {inf, 0}, {inf, inf}, {-inf, -inf}} {
		_, err := sampler.Sample(logits)
		expect(t, err, StatusBadLogits)
	}
	_, err = sampler.Sample(nil)
	expect(t, err, StatusInvalidArgument)
	_, err = NewSampler(SamplerOptions{Temperature: nan})
	expect(t, err, StatusInvalidArgument)
	zero, _ := NewSampler(SamplerOptions{TopK: 1, UseTopP: true})
	defer zero.Close()
	if token, err := zero.Sample([]float32{1, 3, 3}); token != 1 || err != nil {
		t.Fatal(token, err)
	}
	banned, _ := NewSampler(SamplerOptions{Bias: map[int32]float32{0: -inf, 1: -inf}})
	defer banned.Close()
	_, err = banned.Sample([]float32{1, 2})
	expect(t, err, StatusBadLogits)
}

func TestPanicInCallbackIsAnError(t *testing.T) {
	_, c := open(t, ContextOptions{MaxBatchTokens: 16})
	_, err := c.Prefill(background, 0, make([]int32, 64), &StepOptions{Progress: func(_, _ uint64) { panic("oh") }})
	expect(t, err, StatusCallbackPanicked)
	if length, _ := c.Length(0); length != 0 {
		t.Fatal(length)
	}
	rows := 0
	_, err = c.Prefill(background, 0, make([]int32, 20), &StepOptions{Row: func(r Row) {
		rows++
		_ = append([]float32(nil), r.Values...)
		if rows == 3 {
			panic("row")
		}
	}})
	expect(t, err, StatusCallbackPanicked)
	if rows != 3 {
		t.Fatal(rows)
	}
	if _, err = c.Prefill(background, 0, []int32{1}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestCancelFromAnotherGoroutine(t *testing.T) {
	_, c := open(t, ContextOptions{MaxBatchTokens: 4})
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(background)
	var once sync.Once
	_, err := c.Prefill(ctx, 0, make([]int32, 200), &StepOptions{Progress: func(_, _ uint64) {
		once.Do(func() { go cancel() })
		time.Sleep(10 * time.Millisecond)
	}})
	expect(t, err, StatusCancelled)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if length, _ := c.Length(0); length != 0 {
		t.Fatal(length)
	}
	if _, err = c.Prefill(ctx, 0, []int32{1}, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err = c.Prefill(background, 0, []int32{1}, nil); err != nil { // a stale cancel stops nothing
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if after := runtime.NumGoroutine(); after > before {
		t.Fatalf("%d goroutines, %d before", after, before)
	}
}

func TestLogEndsWithItsRuntime(t *testing.T) {
	r, err := NewRuntime(RuntimeOptions{Log: func(int, string) { panic("dropped") }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Load(background, "no such file", LoadOptions{})
	expect(t, err, StatusNotFound)
	r.Close()
	_, err = NewRuntime(RuntimeOptions{Flags: 1 << 30, Log: func(int, string) {}})
	expect(t, err, StatusUnsupported)
}

// 100 goroutines share 4 contexts while the collector runs: each answer is right, or StatusBusy.
func TestGoroutinesShareContexts(t *testing.T) {
	m, c0 := open(t, ContextOptions{MaxSequences: 4})
	contexts := []*Context{c0}
	for len(contexts) < 4 {
		c, err := m.NewContext(ContextOptions{Device: "cpu", Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		contexts = append(contexts, c)
	}
	prompt := []int32{1, 654, 800, 261, 460}
	whole, err := c0.Prefill(background, 0, prompt, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	// retry repeats a call while another goroutine has the context.
	retry := func(call func() error) error {
		for {
			err := call()
			if statusOf(err) != StatusBusy {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	for i := 0; i < 100; i++ {
		workers.Add(1)
		go func(c *Context) {
			defer workers.Done()
			var sequence Sequence
			var step Step
			err := retry(func() (err error) { sequence, err = c.NewSequence(); return })
			if err == nil {
				err = retry(func() (err error) {
					allocate := func(_, _ uint64) { _ = make([]byte, 1024) }
					step, err = c.Prefill(background, sequence, prompt, &StepOptions{Progress: allocate})
					return
				})
			}
			if err != nil {
				t.Error(err)
				return
			}
			for v, x := range step.Logits {
				if x != whole.Logits[v] {
					t.Errorf("logit %d is %g, expected %g", v, x, whole.Logits[v])
					return
				}
			}
			if err := retry(func() error { return c.Truncate(sequence, 0) }); err != nil {
				t.Error(err)
			}
		}(contexts[i%4])
	}
	workers.Wait()
	close(stop)
	collector.Wait()
}

// Objects that nobody closed are released by the collector, in whatever order.
func TestCollectorReleases(t *testing.T) {
	for i := 0; i < 5; i++ {
		r, err := NewRuntime(RuntimeOptions{BackendPath: os.Getenv("KVASIR_TEST_PLUGINS"), Log: func(int, string) {}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.Load(background, filepath.Join(os.Getenv("KVASIR_TEST_DATA"), "demo.gguf"), LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.NewContext(ContextOptions{Device: "cpu", Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Prefill(background, 0, []int32{1, 2}, nil); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
	}
	runtime.GC()
	runtime.GC()
}
