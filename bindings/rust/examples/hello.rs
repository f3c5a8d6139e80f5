// SPDX-License-Identifier: MIT
//
// hello: opens a model, writes text greedily, and shows an error, callbacks and a cancel from another thread.
//   hello model.gguf "Once upon a time" [plugins]
use kvasir::*;

const TOKENS_TO_WRITE: usize = 40;

fn generate(model: &Model, context: &mut Context, prompt: &str) -> Result<()> {
    let tokenizer = model.tokenizer()?;
    let mut tokens = tokenizer.encode(prompt, EncodeOptions { add_special: true, ..Default::default() })?;
    let mut sampler = Sampler::new(SamplerOptions::default())?;
    let step = context.prefill(0, &tokens, StepOptions::default())?;
    let mut token = sampler.sample(step.logits)?;
    for _ in 0..TOKENS_TO_WRITE {
        if tokenizer.ends_generation(token) {
            break;
        }
        tokens.push(token);
        let step = context.decode_one(0, token, StepOptions::default())?;
        token = sampler.sample(step.logits)?;
    }
    println!("text: {}", String::from_utf8_lossy(&tokenizer.decode(&tokens, false)?));
    Ok(())
}

fn count_rows(context: &mut Context) -> Result<()> {
    let sequence = context.create_sequence()?;
    let mut rows = 0;
    let mut count = |_: Row| rows += 1;
    context.prefill(sequence, &[1, 2, 3], StepOptions { row: Some(&mut count), ..Default::default() })?;
    println!("rows: {rows}");
    Ok(())
}

/// Stops a long call from another thread, at its first batch.
fn cancelled(context: &mut Context) -> Result<()> {
    let sequence = context.create_sequence()?;
    let cancel = Cancel::new()?;
    let (begun, wait) = std::sync::mpsc::channel();
    let outcome = std::thread::scope(|scope| {
        let flag = &cancel;
        scope.spawn(move || {
            let _ = wait.recv();
            flag.set();
        });
        let mut progress = |done: u64, total: u64| {
            let _ = begun.send((done, total));
            while !cancel.is_set() {
                std::thread::yield_now();
            }
        };
        let options = StepOptions { cancel: Some(&cancel), progress: Some(&mut progress), ..Default::default() };
        context.prefill(sequence, &[1; 200], options).map(|_| ())
    });
    println!("cancelled: {}", outcome.expect_err("stopped"));
    println!("the sequence holds {} tokens", context.sequence_length(sequence)?);
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, prompt, rest @ ..] = arguments.as_slice() else {
        return Err("usage: hello model.gguf prompt [plugins]".into());
    };
    let runtime = Runtime::new(RuntimeOptions { backend_path: rest.first().cloned(), ..Default::default() })?;
    if let Err(error) = Model::load(&runtime, "no such file.gguf", LoadOptions::default()) {
        println!("error: {error}");
    }
    let model = Model::load(&runtime, model, LoadOptions::default())?;
    let options = ContextOptions { device: Some("cpu".into()), threads: 1, max_batch_tokens: 16, ..Default::default() };
    let mut context = Context::new(&model, options)?;
    generate(&model, &mut context, prompt)?;
    count_rows(&mut context)?;
    cancelled(&mut context)?;
    Ok(())
}
