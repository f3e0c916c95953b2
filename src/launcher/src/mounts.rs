//! The folders that a script may write to.

use crate::bind_paths;
use crate::setup_error::{At, SetupError};
use crate::wire::{LaunchRequest, Profile};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chownat, open};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount};
use rustix::process::{Gid, Uid};
use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const STAGE: &str = "the script's folders";
/// Below it is all that the script writes, so that one limit holds for it.
const DISK: &str = "/run/callslip/disk";

/// Makes the folders stand, and writes the script. Returns the first one, where only a descriptor leads to it.
pub(crate) fn prepare(request: &LaunchRequest) -> Result<Option<OwnedFd>, SetupError> {
    match request.profile {
        Profile::Isolated => {
            is_apart(request)?;
            mount_folders(request)?;
        }
        Profile::Restricted => {
            if let Some(user) = request.user {
                // The script's own folder first: nobody else may pass it.
                let own = request.script.iter().flat_map(|(path, _)| path.parent().into_iter().chain([path.as_path()]));
                for path in own.chain(request.writable.iter().map(PathBuf::as_path)) {
                    give(path, user, user)?;
                }
                bind_paths::open(request, user)?;
            }
        }
        Profile::Unconfined => {}
    }
    if let Some((path, text)) = &request.script {
        fs::write(path, text).at("the script's file")?;
    }
    match request.writable.first() {
        Some(folder) if request.profile == Profile::Isolated => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            Ok(Some(open(folder, flags, Mode::empty()).at(STAGE)?))
        }
        _ => Ok(None),
    }
}

/// What is reported is measured: the namespaces must be others than the program's.
fn is_apart(request: &LaunchRequest) -> Result<(), SetupError> {
    const STAGE: &str = "the namespaces";
    for needed in ["mnt", "pid", "net", "ipc"] {
        if !apart(request, needed) {
            return Err(SetupError::new(STAGE, format!("the {needed} namespace is still that of the program")));
        }
    }
    Ok(())
}

/// Whether a namespace is another one than the program's.
pub(crate) fn apart(request: &LaunchRequest, kind: &str) -> bool {
    let theirs = request.namespaces.iter().find(|(name, _)| name == kind).map(|(_, identity)| identity);
    let own = fs::read_link(format!("/proc/self/ns/{kind}"));
    matches!((own, theirs), (Ok(own), Some(theirs)) if own.as_os_str() != theirs.as_str())
}

fn mount_folders(request: &LaunchRequest) -> Result<(), SetupError> {
    const STAGE: &str = "the file system of the script";
    let owner = request.user.unwrap_or_else(|| rustix::process::getuid().as_raw());
    let group = request.user.unwrap_or_else(|| rustix::process::getgid().as_raw());
    let bounds = &request.bounds;
    let options = format!("size={},nr_inodes={},mode=0755", bounds.disk_bytes, bounds.disk_files);
    let options = CString::new(options).map_err(std::io::Error::other).at(STAGE)?;
    fs::create_dir_all(DISK).at(STAGE)?;
    mount("tmpfs", DISK, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str()).at(STAGE)?;
    mount_change(DISK, MountPropagationFlags::PRIVATE).at(STAGE)?;
    for (index, folder) in request.writable.iter().enumerate() {
        if folder.starts_with("/dev") {
            continue;
        }
        let inner = Path::new(DISK).join(index.to_string());
        fs::create_dir(&inner).at(STAGE)?;
        let files = request.files.as_ref().filter(|_| index == 0);
        if files.is_some() {
            // Before the folder is the script's, in which nobody else may make one.
            fs::create_dir(inner.join("in")).at(STAGE)?;
        }
        give(&inner, owner, group)?;
        mount_bind(&inner, folder).at(STAGE)?;
        if let Some(files) = files {
            // It is read-only there, and so is this mount of it.
            mount_bind(files, folder.join("in")).at(STAGE)?;
        }
    }
    unmount(DISK, UnmountFlags::DETACH).at(STAGE)
}

fn give(folder: &Path, user: u32, group: u32) -> Result<(), SetupError> {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    chownat(CWD, folder, user, group, AtFlags::SYMLINK_NOFOLLOW).at(STAGE)
}
