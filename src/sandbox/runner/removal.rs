//! Removes a folder, whatever a script did to it.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, chmodat, openat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Removes it with all that is in it. What can't be removed stays.
///
/// However deep it is, no path gets long and few descriptors are open: folders in folders are moved up first.
pub(super) fn remove(parent: impl AsFd, folder: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(top) = openat(&parent, folder, flags, Mode::empty()) {
        empty(&top);
    }
    // Somebody may have removed it before.
    let _ = unlinkat(parent, folder, AtFlags::REMOVEDIR);
}

fn empty(top: &OwnedFd) {
    let mut moved = 0_u64;
    loop {
        let mut progress = false;
        for name in names(top) {
            if !is_folder(top, &name) {
                progress |= unlinkat(top, &name, AtFlags::empty()).is_ok();
                continue;
            }
            if let Some(inner) = enter(top, &name) {
                for below in names(&inner) {
                    if is_folder(&inner, &below) {
                        // One without rights can't be moved: its entry `..` would change.
                        let _ = chmodat(&inner, &below, Mode::RWXU, AtFlags::empty());
                        progress |= move_up(&inner, &below, top, &mut moved);
                    } else {
                        progress |= unlinkat(&inner, &below, AtFlags::empty()).is_ok();
                    }
                }
            }
            progress |= unlinkat(top, &name, AtFlags::REMOVEDIR).is_ok();
        }
        if !progress {
            return;
        }
    }
}

fn move_up(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> bool {
    loop {
        *moved += 1;
        match renameat_with(from, name, top, format!("moved-{moved}"), RenameFlags::NOREPLACE) {
            Ok(()) => return true,
            Err(Errno::EXIST) => {}
            Err(_) => return false,
        }
    }
}

fn enter(top: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(top, name, flags, Mode::empty()).ok().or_else(|| {
        chmodat(top, name, Mode::RWXU, AtFlags::empty()).ok()?;
        openat(top, name, flags, Mode::empty()).ok()
    })
}

fn is_folder(folder: &OwnedFd, name: &CStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory)
}

fn names(folder: &OwnedFd) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(folder) else { return Vec::new() };
    let named = |name: &CStr| !matches!(name.to_bytes(), b"." | b"..");
    entries.flatten().map(|entry| entry.file_name().to_owned()).filter(|name| named(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn deep_and_closed_folders_are_removed() {
        let made = tempfile::tempdir().unwrap().keep();
        let mut deepest = openat(CWD, &made, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let name = "d".repeat(200);
        for _ in 0..1500 {
            rustix::fs::mkdirat(&deepest, &name, Mode::RWXU).unwrap();
            deepest = openat(&deepest, &name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        fs::create_dir_all(made.join("x/y")).unwrap();
        fs::write(made.join("x/y/z"), "").unwrap();
        fs::write(made.join("moved-1"), "").unwrap();
        std::os::unix::fs::symlink("/", made.join("x/link")).unwrap();
        fs::set_permissions(made.join("x/y"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(made.join("x"), fs::Permissions::from_mode(0o0)).unwrap();
        remove(CWD, &made);
        assert!(!made.exists());
    }
}
