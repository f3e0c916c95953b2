//! Builds the launcher, which starts scripts in their box, and puts it where the wheel takes it from.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/launcher");
    println!("cargo:rerun-if-changed=src/sandbox/wire.rs");
    println!("cargo:rerun-if-changed=src/sandbox/runner/removal.rs");
    // Scripts are run from Python, and on Linux only.
    if env::var_os("CARGO_FEATURE_PYTHON").is_none() || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let target = env::var("TARGET")?;
    // Beside the profiles of this package: <target>/<profile>/build/<package>/out.
    let folder = out.ancestors().nth(4).ok_or("the folder of this build has no parents")?.join("launcher");
    let mut cargo = Command::new(env::var("CARGO")?);
    let profile = if env::var("PROFILE")? == "release" { "release" } else { "quick" };
    cargo.args(["build", "--profile", profile, "--locked", "--quiet", "--manifest-path", "src/launcher/Cargo.toml"]);
    cargo.arg("--target-dir").arg(&folder);
    let mut built = folder;
    if target != env::var("HOST")? {
        cargo.args(["--target", &target]);
        built.push(&target);
    }
    // What instruments or checks this package is not meant for that one.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER"] {
        cargo.env_remove(name);
    }
    if !cargo.status()?.success() {
        return Err("the launcher can't be built".into());
    }
    std::fs::copy(built.join(profile).join(NAME), Path::new(&out).join(NAME))?;
    Ok(())
}

const NAME: &str = "callslip-launcher";
