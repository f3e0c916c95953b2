//! Every reply of the corpora is read as expected: what it is, its value, and a repair exactly where one is expected.

use crate::corpus::{Case, read};
use std::collections::BTreeMap;

fn check(cases: &[Case]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut families: BTreeMap<(&str, String), (usize, usize)> = BTreeMap::new();
    for case in cases {
        let row = families.entry((case.way.protocol.name(), case.family.clone())).or_default();
        row.1 += 1;
        match read(case).compare(case) {
            Ok(()) => row.0 += 1,
            Err(difference) => {
                wrong.push(format!("{} {}\n  {:?}\n  {difference}", case.id, case.failure_mode, case.text));
            }
        }
    }
    for ((protocol, family), (right, all)) in &families {
        println!("{protocol:8} {family:28} {right:3}/{all}");
    }
    let (right, all) = families.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    println!("{:8} {:28} {right:3}/{all}", "", "");
    wrong
}

#[test]
fn own_corpus() {
    let cases = crate::corpus::own();
    assert!(cases.len() >= 60);
    let wrong = check(&cases);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn replies_of_2026() {
    let cases = crate::corpus::of_2026();
    assert!(cases.len() >= 150);
    let wrong = check(&cases);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "make test-shared runs it"]
fn shared_corpus() {
    let wrong = check(&crate::corpus::shared());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
