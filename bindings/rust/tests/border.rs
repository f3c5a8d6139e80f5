// SPDX-License-Identifier: MIT
//
// The border: errors, callbacks, panics, cancellation, bytes, threads. The model and plugins are those of
// KVASIR_TEST_DATA and KVASIR_TEST_PLUGINS.
#![forbid(unsafe_code)]

use kvasir::sys::*;
use kvasir::*;
use std::sync::Arc;

fn model() -> Model {
    let plugins = std::env::var("KVASIR_TEST_PLUGINS").expect("KVASIR_TEST_PLUGINS");
    let data = std::env::var("KVASIR_TEST_DATA").expect("KVASIR_TEST_DATA");
    let runtime = Runtime::new(RuntimeOptions { backend_path: Some(plugins), ..Default::default() }).unwrap();
    Model::load(&runtime, format!("{data}/demo.gguf"), LoadOptions::default()).unwrap() // outlives the runtime's handle
}

fn context(model: &Model, max_batch_tokens: u32) -> Context {
    let options = ContextOptions { device: Some("cpu".into()), threads: 1, max_batch_tokens, ..Default::default() };
    Context::new(model, options).unwrap()
}

#[test]
fn errors_are_sentences() {
    let mut context = context(&model(), 0); // outlives the model's handle
    let error = context.prefill(0, &vec![1; 100_000], StepOptions::default()).unwrap_err();
    assert_eq!(error.status(), KV_CONTEXT_FULL);
    assert!(error.to_string().starts_with("KV_CONTEXT_FULL: ") && error.message().contains("100000"), "{error}");
    assert_eq!(context.prefill(0, &[], StepOptions::default()).unwrap_err().status(), KV_INVALID_ARGUMENT);
    assert_eq!(context.prefill(7, &[1], StepOptions::default()).unwrap_err().status(), KV_INVALID_ARGUMENT);
    assert!(context.prefill(0, &[1, 2], StepOptions::default()).is_ok());
    let nul = Model::load(&Runtime::new(Default::default()).unwrap(), "a\0b", LoadOptions::default()).unwrap_err();
    assert_eq!(nul.status(), KV_INVALID_ARGUMENT);
}

#[test]
fn any_bytes_come_back() {
    let model = model();
    let tokenizer = model.tokenizer().unwrap();
    let long = vec![0x80; 1 << 16];
    for text in [&b""[..], b"\xe2\x80", b"\xf0\x9f", b"\xc0\xaf", b"\xed\xa0\x80", b"\xff", b"a\0b", &long] {
        let tokens = tokenizer.encode(text, EncodeOptions::default()).unwrap();
        assert_eq!(tokenizer.decode(&tokens, false).unwrap(), text);
    }
    let mut stream = tokenizer.stream().unwrap();
    assert_eq!(stream.flush().unwrap(), b"");
    assert!(stream.push(-1).is_err());
}

#[test]
fn broken_logits() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let mut sampler = Sampler::new(SamplerOptions { temperature: 1.0, ..Default::default() }).unwrap();
    for logits in [[nan, 0.0], [nan, nan], [inf, 0.0], [inf, inf], [-inf, -inf]] {
        assert_eq!(sampler.sample(&logits).unwrap_err().status(), KV_BAD_LOGITS, "{logits:?}");
    }
    assert_eq!(sampler.sample(&[]).unwrap_err().status(), KV_INVALID_ARGUMENT);
    assert_eq!(sampler.sample(&[-3.0]).unwrap(), 0);
    let mut banned = Sampler::new(SamplerOptions { bias: &[(0, -inf), (1, -inf)], ..Default::default() }).unwrap();
    assert_eq!(banned.sample(&[1.0, 2.0]).unwrap_err().status(), KV_BAD_LOGITS);
}

#[test]
fn what_zero_means() {
    let mut zero = Sampler::new(SamplerOptions { top_k: 1, top_p: Some(0.0), ..Default::default() }).unwrap();
    assert_eq!(zero.sample(&[1.0, 3.0, 3.0]).unwrap(), 1);
    for bad in [-1.0, f32::NAN] {
        assert!(Sampler::new(SamplerOptions { temperature: bad, ..Default::default() }).is_err());
        assert!(Sampler::new(SamplerOptions { top_p: Some(bad), ..Default::default() }).is_err());
    }
    let stream = || {
        let mut s = Sampler::new(SamplerOptions { temperature: 1.0, seed: 42, ..Default::default() }).unwrap();
        (0..64).map(|_| s.sample(&[0.0; 16]).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(stream(), stream());
}

#[test]
fn a_panic_in_a_callback_is_an_error() {
    let model = model();
    let mut context = context(&model, 16);
    let mut progress = |_: u64, _: u64| panic!("oh");
    let options = StepOptions { progress: Some(&mut progress), ..Default::default() };
    let error = context.prefill(0, &[1; 64], options).unwrap_err();
    assert_eq!((error.status(), error.message()), (CALLBACK_PANICKED, "a callback panicked: oh"));
    assert_eq!(context.sequence_length(0).unwrap(), 0);

    let cancel = Cancel::new().unwrap();
    let mut rows = 0;
    let mut row = |_: Row| {
        rows += 1;
        assert!(rows < 3, "row {rows}");
    };
    let options = StepOptions { cancel: Some(&cancel), row: Some(&mut row), ..Default::default() };
    assert_eq!(context.prefill(0, &[1; 20], options).unwrap_err().status(), CALLBACK_PANICKED);
    assert_eq!((rows, cancel.is_set()), (3, false));

    let hook = Box::new(|_: &mut [f32]| panic!("hook"));
    let mut sampler = Sampler::new(SamplerOptions { hook: Some(hook), ..Default::default() }).unwrap();
    assert_eq!(sampler.sample(&[1.0, 2.0]).unwrap_err().status(), CALLBACK_PANICKED);
    assert!(context.prefill(0, &[1], StepOptions::default()).is_ok());
}

#[test]
fn a_log_lives_as_long_as_its_runtime() {
    let held = Arc::new(());
    let log_holds = held.clone();
    let log = move |_: LogLevel, _: &str| assert_eq!(*log_holds, ());
    let runtime = Runtime::new(RuntimeOptions { log: Some(Box::new(log)), ..Default::default() }).unwrap();
    assert_eq!(Arc::strong_count(&held), 2);
    drop(runtime);
    assert_eq!(Arc::strong_count(&held), 1);
    let refused = held.clone();
    let log = move |_: LogLevel, _: &str| assert_eq!(*refused, ());
    assert!(Runtime::new(RuntimeOptions { flags: 1 << 30, log: Some(Box::new(log)), ..Default::default() }).is_err());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn each_input_has_its_own_outcome() {
    let model = model();
    let mut context = context(&model, 0);
    let other = context.create_sequence().unwrap();
    let steps = context.decode(&[(0, 1), (other, -5)], StepOptions::default()).unwrap();
    assert!(steps[0].is_ok());
    assert_eq!(steps[1].as_ref().unwrap_err().status(), KV_INVALID_ARGUMENT);
    assert_eq!(context.sequence_length(0).unwrap(), 1);
    assert_eq!(context.decode(&[(0, 1); 1000], StepOptions::default()).unwrap_err().status(), KV_INVALID_ARGUMENT);
}

#[test]
fn threads_share_a_model() {
    let model = model();
    let run = || context(&model, 0).prefill(0, &[1, 654, 800], StepOptions::default()).map(|s| s.logits.to_vec());
    let alone = run().unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap().unwrap(), alone);
        }
    });
}
