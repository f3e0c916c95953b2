//! The user that a script becomes where the program is root.

use rustix::thread::{CapabilitySet, capabilities};
use std::fs;
use std::hash::{BuildHasher, RandomState};

/// A number that nobody has, of those that may be had here. `None` where the program is not root.
pub(super) fn stranger() -> Option<u32> {
    rustix::process::geteuid().is_root().then(|| {
        let chance = RandomState::new().hash_one(std::process::id());
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        pick(&map, chance)
    })
}

/// Whether the program is root with the right to mount, without any namespace.
pub(super) fn may_mount() -> bool {
    const ADMIN: CapabilitySet = CapabilitySet::SYS_ADMIN;
    rustix::process::geteuid().is_root() && capabilities(None).is_ok_and(|held| held.effective.contains(ADMIN))
}

fn pick(map: &str, chance: u64) -> u32 {
    const FIRST: u64 = 0x6000_0000;
    let range = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().filter_map(|one| one.parse::<u64>().ok());
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some((first, first.saturating_add(count)))
    };
    let (first, end) = map.lines().filter_map(range).max_by_key(|(_, end)| *end).unwrap_or((0, 1 << 32));
    let number = if end > FIRST + (1 << 28) {
        FIRST + chance % (1 << 28)
    } else {
        // Of a small range the upper part: below are those that packages make. The last ones have meanings.
        let spare = (end - first) / 4;
        end.saturating_sub(spare.max(1)) + if spare > 16 { chance % (spare - 16) } else { 0 }
    };
    u32::try_from(number).unwrap_or(u32::MAX - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_that_may_be_had() {
        for chance in [0, 7, u64::MAX] {
            assert!((0x6000_0000..0x7000_0000).contains(&pick("         0          0 4294967295\n", chance)));
            assert!((49_152..65_536).contains(&pick("0 100000 65536\n", chance)));
            assert!((1_000..1_100).contains(&pick("0 1000 1\n1000 5000 100\n", chance)));
            assert_eq!(pick("0 1000 1\n", chance), 0);
        }
    }
}
