//! Packages are installed whole or not at all, and nothing of theirs runs. The index is a program of the tests'.

use callslip::sandbox::packages::{InstallRequest, Installed, NotInstalled, Resolved, install, resolve};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// A program of the environment that the extension is built for.
fn program(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_environment = std::env::var_os("PYO3_PYTHON").map(|python| PathBuf::from(python).with_file_name(name));
    let mut places = vec![root.join(".venv/bin").join(name)];
    places.extend(of_environment);
    places.into_iter().find(|place| place.is_file())
}

struct Kit {
    folder: PathBuf,
    index: Child,
    port: String,
    python: PathBuf,
    uv: PathBuf,
}

impl Kit {
    /// `None` where there is no uv: the core is tested without Python too.
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (python, uv) = (program("python")?, program("uv")?);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("callslip-packages-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/package_index.py");
        let mut index = Command::new(&python)
            .arg(server)
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(index.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Some(Self { folder, index, port: port.trim().to_owned(), python, uv })
    }

    fn request(&self, dependencies: &[&str]) -> InstallRequest {
        serde_json::from_value(serde_json::json!({
            "dependencies": dependencies,
            "python": self.python,
            "uv": self.uv,
            "cache": self.folder.join("cache"),
            "index": format!("http://127.0.0.1:{}/simple", self.port),
        }))
        .unwrap()
    }

    fn install(&self, dependencies: &[&str]) -> Result<Installed, NotInstalled> {
        run(&self.request(dependencies)).0
    }

    fn resolve(&self, dependencies: &[&str]) -> Result<Resolved, NotInstalled> {
        let (_cancel, cancelled) = watch::channel(false);
        block_on(resolve(&self.request(dependencies), |_, _| (), cancelled))
    }

    fn requests(&self) -> String {
        fs::read_to_string(self.folder.join("requests.txt")).unwrap_or_default()
    }

    fn drafts(&self) -> Vec<String> {
        let sets = fs::read_dir(self.folder.join("cache/sets")).unwrap();
        sets.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("draft"))
            .collect()
    }
}

impl Drop for Kit {
    fn drop(&mut self) {
        drop(self.index.stdin.take());
        let _ = self.index.wait();
        let _ = Command::new("chmod").args(["-R", "u+w"]).arg(&self.folder).status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The outcome, and what was told on the way.
fn run(request: &InstallRequest) -> (Result<Installed, NotInstalled>, Vec<(String, String)>) {
    let (_cancel, cancelled) = watch::channel(false);
    let mut told = Vec::new();
    let tell = |stage: &str, words: &str| told.push((stage.to_owned(), words.to_owned()));
    let outcome = block_on(install(request, tell, cancelled));
    (outcome, told)
}

fn refused(outcome: Result<Installed, NotInstalled>) -> (String, String) {
    match outcome {
        Err(NotInstalled::Refused(refused)) => (refused.code.as_str().to_owned(), refused.message),
        other => (String::new(), format!("{other:?}")),
    }
}

#[test]
fn wheels_are_unpacked_and_nothing_of_them_runs() {
    let Some(kit) = Kit::new() else { return };
    let request = kit.request(&["good-one", "good_one>=1"]);
    let (outcome, told) = run(&request);
    let set = outcome.unwrap();
    assert!(set.fresh);
    let stages: Vec<&str> = told.iter().map(|(stage, _)| stage.as_str()).collect();
    assert_eq!(stages.first(), Some(&"resolve"));
    assert_eq!(stages.last(), Some(&"done"));
    assert!(stages.contains(&"compile"), "{told:?}");
    let mut names: Vec<String> =
        fs::read_dir(&set.path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = ["__pycache__", "good_one-1.0.dist-info", "good_one.py", "tail_end-1.0.dist-info", "tail_end.py"]
        .map(str::to_owned);
    assert_eq!(names, expected);
    let mode = |name: &str| fs::metadata(set.path.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("__pycache__"), mode("good_one.py")), (0o555, 0o555, 0o444));
    let compiled = fs::read_dir(set.path.join("__pycache__")).unwrap().count();
    assert!(compiled >= 2, "{compiled}");
    let imported = Command::new(&kit.python)
        .args(["-I", "-S", "-c"])
        .arg(format!("import sys; sys.path.append({:?}); import good_one, tail_end; print(good_one.NAME)", set.path))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&imported.stdout), "good_one\n");
    assert!(!kit.folder.join("trace").exists());
    assert_eq!(kit.drafts(), [""; 0]);
}

#[test]
fn what_is_there_costs_no_process_and_no_request() {
    let Some(kit) = Kit::new() else { return };
    let first = kit.install(&["tail-end", "good-one"]).unwrap();
    let requests = kit.requests();
    let mut request = kit.request(&["Good.One", "tail_end"]);
    request.uv = PathBuf::from("/nowhere/uv");
    let (second, told) = run(&request);
    assert_eq!(second, Ok(Installed { path: first.path.clone(), fresh: false }));
    assert!(told.is_empty());
    assert_eq!(kit.requests(), requests);
    let other = kit.install(&["tail-end"]).unwrap();
    assert_ne!(other.path, first.path);
}

#[test]
fn an_archive_of_sources_is_not_built() {
    let Some(kit) = Kit::new() else { return };
    let (code, message) = refused(kit.install(&["built-only"]));
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "dependency_install_failed",
            "built-only would have to be built, because there is no wheel for this Python and machine, and nothing is built \
             here: choose another version or another package"
        )
    );
    assert!(kit.requests().contains("built-only"));
    assert!(!kit.folder.join("trace").exists());
    assert_eq!(kit.drafts(), [""; 0]);
}

#[test]
fn an_invented_name_is_told_by_name() {
    let Some(kit) = Kit::new() else { return };
    let (code, message) = refused(kit.install(&["tail-end", "invented-name"]));
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "dependency_install_failed",
            "invented-name is no package of the index: check the name, or write the script without it"
        )
    );
    let (_, message) = refused(kit.install(&["tail-end>=2"]));
    assert_eq!(
        message,
        "the packages don't fit together: because only tail-end==1.0 is available and you require tail-end>=2; ask for other \
         versions"
    );
}

#[test]
fn two_at_once_make_one_set() {
    let Some(kit) = Kit::new() else { return };
    let request = kit.request(&["good-one"]);
    let (_cancel, cancelled) = watch::channel(false);
    let (one, other) = block_on(async {
        tokio::join!(install(&request, |_, _| (), cancelled.clone()), install(&request, |_, _| (), cancelled))
    });
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.path, other.path);
    assert!(one.fresh != other.fresh, "{one:?} {other:?}");
    assert_eq!(kit.drafts(), [""; 0]);
}

#[test]
fn an_installation_can_be_cancelled() {
    let Some(kit) = Kit::new() else { return };
    let request = kit.request(&["slow"]);
    let (cancel, cancelled) = watch::channel(false);
    let began = Instant::now();
    let outcome = block_on(async {
        let stop = async {
            while !kit.requests().contains("slow") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            cancel.send_replace(true);
        };
        tokio::join!(install(&request, |_, _| (), cancelled), stop).0
    });
    assert_eq!(outcome, Err(NotInstalled::Cancelled));
    let commands = fs::read_dir("/proc").into_iter().flatten().flatten();
    let commands = commands.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let folder = kit.folder.join("cache").display().to_string();
    let alive = commands.filter(|command| String::from_utf8_lossy(command).contains(&folder)).count();
    assert_eq!(alive, 0);
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(kit.drafts(), [""; 0]);
}

#[test]
fn what_opens_an_index_is_told_to_it_alone() {
    let Some(kit) = Kit::new() else { return };
    let mut request = kit.request(&["tail-end"]);
    request.index = Some(format!("http://ann:s3cr3t-word@127.0.0.1:{}/private/simple", kit.port));
    let (outcome, told) = run(&request);
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(kit.requests().contains("ann:s3cr3t-word"));
    request.dependencies = vec!["invented-name".to_owned()];
    let (failed, told_too) = run(&request);
    request.index = Some("http://ann:s3cr3t-word@127.0.0.1:9/simple".to_owned());
    let (unreached, told_last) = run(&request);
    let all = format!("{told:?} {told_too:?} {told_last:?} {failed:?} {unreached:?}");
    assert!(all.contains("the package index can't be reached"), "{all}");
    assert!(!all.contains("s3cr3t-word"), "{all}");
}

#[test]
fn no_variable_reaches_a_listener() {
    let Some(kit) = Kit::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for written in [
        format!("x @ http://127.0.0.1:{port}/${{CARGO_MANIFEST_DIR}}/x.whl"),
        format!("--index-url=http://127.0.0.1:{port}/simple"),
        format!("tail-end\n--index-url=http://127.0.0.1:{port}/simple"),
    ] {
        assert_eq!(refused(kit.install(&[&written])).0, "dependency_rejected");
    }
    assert!(listener.accept().is_err());
    kit.install(&["tail-end"]).unwrap();
    assert!(!kit.requests().contains(env!("CARGO_MANIFEST_DIR")), "the index learns of this machine");
}

#[test]
fn what_a_crash_left_is_swept_and_what_is_under_way_is_not() {
    let Some(kit) = Kit::new() else { return };
    let sets = kit.folder.join("cache/sets");
    let draft = |name: &str, age: u64| {
        let folder = sets.join(name);
        fs::create_dir_all(folder.join("set/inner")).unwrap();
        fs::set_permissions(folder.join("set/inner"), fs::Permissions::from_mode(0o555)).unwrap();
        let opened = fs::File::open(&folder).unwrap();
        opened.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        opened
    };
    draft(".draft-left", 3600);
    draft(".draft-new", 10);
    let owned = draft(".draft-owned", 3600);
    owned.lock().unwrap();
    kit.install(&["tail-end"]).unwrap();
    let mut left = kit.drafts();
    left.sort();
    assert_eq!(left, [".draft-new", ".draft-owned"]);
}

#[test]
fn what_installers_that_were_ended_left_is_swept_unless_one_is_at_work() {
    let Some(kit) = Kit::new() else { return };
    let downloads = kit.folder.join("cache/uv");
    let left = [downloads.join(".tmpOne"), downloads.join("archive-v0/.tmpTwo")];
    let make = || left.iter().for_each(|folder| fs::create_dir_all(folder.join("inner")).unwrap());
    let there = || left.iter().filter(|folder| folder.exists()).count();
    make();
    let other = fs::File::create(kit.folder.join("cache/uv.lock")).unwrap();
    other.lock_shared().unwrap();
    kit.install(&["tail-end"]).unwrap();
    assert_eq!(there(), 2);
    drop(other);
    kit.install(&["no-such-package"]).unwrap_err();
    assert_eq!(there(), 0);
    // What this very installation leaves is swept by itself, once it is cancelled.
    let (cancel, cancelled) = watch::channel(false);
    let request = kit.request(&["slow"]);
    let tell = |_: &str, _: &str| {
        make();
        cancel.send_replace(true);
    };
    assert_eq!(block_on(install(&request, tell, cancelled)), Err(NotInstalled::Cancelled));
    assert_eq!(there(), 0);
    assert!(downloads.join("archive-v0").is_dir());
}

#[test]
fn what_is_missing_on_the_machine_is_told_to_whom_it_concerns() {
    let Some(kit) = Kit::new() else { return };
    let mut request = kit.request(&["tail-end"]);
    request.uv = PathBuf::from("/nowhere/uv");
    assert_eq!(
        refused(run(&request).0).1,
        "packages can't be installed here, because uv is missing (the developer can install callslip[sandbox]): write the \
         script without them"
    );
    request.python = PathBuf::from("/nowhere/python");
    assert_eq!(
        run(&request).0,
        Err(NotInstalled::InterpreterMissing(
            "there is no interpreter /nowhere/python (No such file or directory (os error 2)): name the interpreter's own \
             path, for example sys.executable"
                .to_owned()
        ))
    );
    request = kit.request(&["tail-end"]);
    request.cache = Some(PathBuf::from("/proc/nowhere"));
    assert_eq!(
        refused(run(&request).0).1,
        "the packages can't be kept in the folder for them (entity not found): write the script without them"
    );
}

#[test]
fn what_would_be_installed_is_told_before_it_is() {
    let Some(kit) = Kit::new() else { return };
    let resolved = kit.resolve(&["good-one"]).unwrap();
    assert_eq!(resolved.packages, ["good-one==1.0", "tail-end==1.0"]);
    assert_eq!(resolved.path, None);
    assert!(kit.drafts().is_empty());
    assert!(!kit.folder.join("trace").exists());
    // Once it is installed, it is known without asking anybody.
    let installed = kit.install(&["good-one"]).unwrap();
    let asked = kit.requests();
    let again = kit.resolve(&["good-one"]).unwrap();
    assert_eq!((again.packages, again.path), (resolved.packages, Some(installed.path)));
    assert_eq!(kit.requests(), asked);
}

#[test]
fn nothing_is_installed_but_what_was_approved() {
    let Some(kit) = Kit::new() else { return };
    let request = InstallRequest { packages: vec!["good-one==1.0".to_owned()], ..kit.request(&["good-one"]) };
    let installed = run(&request).0.unwrap();
    assert!(installed.path.join("good_one.py").exists());
    assert!(!installed.path.join("tail_end.py").exists());
}

#[test]
fn packages_that_are_too_large_are_not_kept() {
    let Some(kit) = Kit::new() else { return };
    for (name, bytes, files) in [("large-one", 1 << 20, 1000), ("many-files", 1 << 30, 200)] {
        let request = InstallRequest { bytes, files, ..kit.request(&[name]) };
        let (code, message) = refused(run(&request).0);
        assert_eq!(code, "dependency_install_failed");
        let words =
            format!("the packages take more than {bytes} bytes or {files} files: ask for fewer or smaller ones");
        assert_eq!(message, words);
        assert!(kit.drafts().is_empty());
        let held = Command::new("du").args(["-sb"]).arg(kit.folder.join("cache")).output().unwrap();
        let held = String::from_utf8(held.stdout).unwrap();
        let held: u64 = held.split_whitespace().next().unwrap().parse().unwrap();
        assert!(held < 1 << 20, "{name}: {held} bytes are kept");
    }
}
