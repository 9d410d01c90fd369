//! Generates the client from proto/, read by buf (of npm, or on PATH): no protoc.
use std::{env, error::Error, fs, path::Path, process::Command};

use prost::Message;
use prost_types::FileDescriptorSet;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={ROOT}/proto");
    let image = Path::new(&env::var("OUT_DIR")?).join("image.binpb");
    let of_npm = Path::new(ROOT).join("node_modules/.bin/buf");
    let buf = if of_npm.exists() { of_npm.as_path() } else { Path::new("buf") };
    let made = Command::new(buf)
        .current_dir(ROOT)
        .args(["build", "proto", "--exclude-source-info", "-o"])
        .arg(&image)
        .status()?;
    if !made.success() {
        return Err("buf could not read proto/".into());
    }
    let files = FileDescriptorSet::decode(&fs::read(&image)?[..])?;
    tonic_prost_build::configure().build_server(false).include_file("generated.rs").compile_fds(files)?;
    Ok(())
}
