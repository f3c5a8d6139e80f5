// SPDX-License-Identifier: MIT

// Hello opens a model, writes text greedily, and shows an error, a callback and a cancel from another goroutine.
//
//	hello model.gguf "Once upon a time" [plugins]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"kvasir"
)

const tokensToWrite = 40

func generate(model *kvasir.Model, kv *kvasir.Context, prompt string) error {
	tokens, err := model.Encode(prompt, true)
	if err != nil {
		return err
	}
	sampler, err := kvasir.NewSampler(kvasir.SamplerOptions{})
	if err != nil {
		return err
	}
	defer sampler.Close()
	step, err := kv.Prefill(context.Background(), 0, tokens, nil)
	if err != nil {
		return err
	}
	for i := 0; i < tokensToWrite; i++ {
		token, err := sampler.Sample(step.Logits)
		if err != nil {
			return err
		}
		if model.EndsGeneration(token) {
			break
		}
		tokens = append(tokens, token)
		steps, err := kv.Decode(context.Background(), []kvasir.Input{{Sequence: 0, Token: token}}, nil)
		if err != nil {
			return err
		}
		step = steps[0]
	}
	text, err := model.Decode(tokens)
	fmt.Printf("text: %s\n", text)
	return err
}

// cancelled stops a long call from another goroutine, at its first batch.
func cancelled(kv *kvasir.Context) error {
	sequence, err := kv.NewSequence()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun := make(chan struct{})
	go func() {
		<-begun
		cancel()
	}()
	signalled := false
	_, err = kv.Prefill(ctx, sequence, make([]int32, 200), &kvasir.StepOptions{Progress: func(done, total uint64) {
		if !signalled {
			signalled = true
			fmt.Printf("progress: first batch of %d tokens\n", total)
			close(begun)
			<-ctx.Done()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("not cancelled: %v", err)
	}
	length, err := kv.Length(sequence)
	fmt.Printf("cancelled: the sequence holds %d tokens\n", length)
	return err
}

func run() error {
	if len(os.Args) < 3 {
		return errors.New("usage: hello model.gguf prompt [plugins]")
	}
	options := kvasir.RuntimeOptions{}
	if len(os.Args) > 3 {
		options.BackendPath = os.Args[3]
	}
	runtime, err := kvasir.NewRuntime(options)
	if err != nil {
		return err
	}
	defer runtime.Close()
	if _, err := runtime.Load(context.Background(), "no such file.gguf", kvasir.LoadOptions{}); err != nil {
		fmt.Println("error:", err)
	}
	model, err := runtime.Load(context.Background(), os.Args[1], kvasir.LoadOptions{})
	if err != nil {
		return err
	}
	defer model.Close()
	kv, err := model.NewContext(kvasir.ContextOptions{Device: "cpu", Threads: 1, MaxBatchTokens: 16})
	if err != nil {
		return err
	}
	defer kv.Close()
	if err := generate(model, kv, os.Args[2]); err != nil {
		return err
	}
	return cancelled(kv)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
