// SPDX-License-Identifier: MIT
//
// Where libkvasir is: KVASIR_LIB_DIR, or pkg-config, or the linker's own places. Needs nothing but std.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=KVASIR_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if let Ok(dir) = std::env::var("KVASIR_LIB_DIR") {
        search(&dir);
    } else if let Ok(found) = Command::new("pkg-config").args(["--libs-only-L", "kvasir"]).output() {
        let flags = String::from_utf8_lossy(&found.stdout).into_owned();
        flags.split_whitespace().filter_map(|flag| flag.strip_prefix("-L")).for_each(search);
    }
    println!("cargo:rustc-link-lib=dylib=kvasir");
}

/// Tells the linker where to look, and this package's own tests and examples where the library is when they run.
fn search(dir: &str) {
    println!("cargo:rustc-link-search=native={dir}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
}
