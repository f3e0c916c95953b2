//! The way to what a script needs, where it leads through folders that only root may enter.
//!
//! The script is another user then. In a mount namespace of the launcher's own, such a folder is covered by one that holds
//! nothing but what the script needs. The host sees nothing of it.

use crate::setup_error::{At, SetupError};
use crate::wire::LaunchRequest;
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const STAGE: &str = "the way to the interpreter";

/// Opens it, where it is closed to this user.
pub(crate) fn open(request: &LaunchRequest, user: u32) -> Result<(), SetupError> {
    let needed: Vec<&Path> = request.readable.iter().chain(&request.writable).map(PathBuf::as_path).collect();
    let closed: BTreeSet<&Path> = needed.iter().filter_map(|path| gate(path, user)).collect();
    if closed.is_empty() {
        return Ok(());
    }
    // SAFETY: the process has one thread, and shares its file system with nobody.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(SetupError::last(STAGE));
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).at(STAGE)?;
    let hidden = needed.into_iter().filter(|path| closed.iter().any(|folder| path.starts_with(folder)));
    // The folders are told apart from the files while they can still be looked at.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let kept = hidden.map(|path| Ok((path, path.is_dir(), open_tree(CWD, path, flags).at(STAGE)?)));
    let kept: Vec<(&Path, bool, OwnedFd)> = kept.collect::<Result<_, SetupError>>()?;
    for folder in closed {
        if !folder.exists() {
            // It lies in another one, which is covered already.
            continue;
        }
        mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"size=1m,mode=0755").at(STAGE)?;
    }
    for (path, is_folder, tree) in kept {
        if is_folder {
            fs::create_dir_all(path).at(STAGE)?;
        } else if !path.exists() {
            fs::create_dir_all(path.parent().unwrap_or(path)).at(STAGE)?;
            fs::write(path, "").at(STAGE)?;
        }
        move_mount(&tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).at(STAGE)?;
    }
    Ok(())
}

/// The first folder on the way that the user may not enter.
fn gate(path: &Path, user: u32) -> Option<&Path> {
    let mut way: Vec<&Path> = path.ancestors().skip(1).collect();
    way.reverse();
    let closed = |folder: &Path| {
        let metadata = fs::metadata(folder)?;
        let may = if metadata.uid() == user { 0o100 } else { 0o001 };
        Ok::<_, std::io::Error>(metadata.mode() & may == 0)
    };
    way.into_iter().find(|folder| closed(folder).unwrap_or(false))
}
