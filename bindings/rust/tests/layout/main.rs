// SPDX-License-Identifier: MIT
//
// Sizes, offsets and constants against the C compiler's, which the file named by KVASIR_C_LAYOUT lists.
use kvasir::sys::*;
use std::mem::{offset_of, size_of};

const RUST: &[(&str, i64)] = include!("list.rs");

#[test]
fn agrees_with_the_c_compiler() {
    let Ok(path) = std::env::var("KVASIR_C_LAYOUT") else {
        println!("skipped: KVASIR_C_LAYOUT names no list of the C compiler");
        return;
    };
    let listed = std::fs::read_to_string(path).expect("the list");
    let c: Vec<(&str, i64)> = listed
        .lines()
        .map(|line| line.split_once(' ').expect("name value"))
        .map(|(name, value)| (name, value.parse().expect("a number")))
        .collect();
    assert!(c.len() > 300, "{} entries", c.len());
    assert_eq!(RUST, c.as_slice());
}

#[test]
fn every_function_links() {
    let version = unsafe { kv_version() };
    assert_eq!(version, KV_VERSION_MAJOR << 16 | KV_VERSION_MINOR << 8 | KV_VERSION_PATCH);
}

// The struct_size rule, seen from a binding of another age.
#[test]
fn sizes_of_other_versions() {
    #[repr(C)]
    struct Future {
        known: kv_sampler_options,
        tail: [u64; 4],
    }
    let mut options = Future { known: kv_sampler_options::sized(), tail: [0; 4] };
    let mut create = |size: u32, tail: u64| {
        options.known.struct_size = size;
        options.tail[2] = tail;
        let mut sampler = std::ptr::null_mut();
        let status = unsafe { kv_sampler_create(&options.known, &mut sampler, std::ptr::null_mut()) };
        unsafe { kv_sampler_release(sampler) };
        status
    };
    let own = size_of::<kv_sampler_options>() as u32;
    let future = size_of::<Future>() as u32;
    assert_eq!(create(own, 0), KV_OK);
    assert_eq!(create(future, 0), KV_OK);
    assert_eq!(create(future, 1 << 63), KV_UNSUPPORTED);
    assert_eq!(create(0, 0), KV_INVALID_ARGUMENT);
    assert_eq!(create(own - 8, 0), KV_INVALID_ARGUMENT);
    assert_eq!(create(own + 1, 0), KV_INVALID_ARGUMENT);
    assert_eq!(create(u32::MAX, 0), KV_INVALID_ARGUMENT);
}
