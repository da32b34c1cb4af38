//! A filter that finds the rules of a system call by its number in few steps.
//!
//! Owns the search; a call's rules themselves are compiled by the library, which would ask for one number after the other. The kernel tries a
//! new filter with every number that it knows, so such a list of a hundred calls takes a third of a millisecond whenever a command starts.
//! Its invariant: it answers as the library's list does.

use std::collections::{BTreeMap, BTreeSet};

use seccompiler::{BackendError, SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter};

/// Rules by a call's number; a call without any always gets the answer.
pub type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `BPF_LD | BPF_W | BPF_ABS`.
const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JA`.
const JUMP: u16 = 0x05;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
const IF_EQUAL: u16 = 0x15;
/// `BPF_JMP | BPF_JGE | BPF_K`.
const IF_AT_LEAST: u16 = 0x35;
/// `BPF_RET | BPF_K`.
const ANSWER: u16 = 0x06;
/// `offsetof(struct seccomp_data, arch)`.
const ARCHITECTURE: u32 = 4;

/// The filter: what `rules` name is answered with `errno`, and all else let through.
pub fn filter(rules: Rules, errno: u32, arch: TargetArch) -> Result<Vec<sock_filter>, BackendError> {
    let action = || SeccompAction::Errno(errno);
    // By the library too: where the numbers are another architecture's it has its own answer.
    let none = SeccompFilter::new([(0, Vec::new())].into_iter().collect(), SeccompAction::Allow, action(), arch)?;
    let mut filter = Vec::<sock_filter>::try_from(none)?;
    let checked = filter.iter().rposition(|step| step.code == LOAD && step.k != ARCHITECTURE);
    filter.truncate(checked.map_or(0, |load| load.saturating_add(1)));
    let mut calls = Vec::new();
    for (number, rules) in rules {
        let whole = SeccompFilter::new([(number, rules)].into_iter().collect(), SeccompAction::Allow, action(), arch)?;
        calls.push((u32::try_from(number).unwrap_or(u32::MAX), Vec::<sock_filter>::try_from(whole)?));
    }
    let mut blocks = tree_length(calls.len());
    let starts: Vec<(u32, usize)> = calls
        .iter()
        .map(|(number, block)| {
            blocks += block.len();
            (*number, blocks - block.len())
        })
        .collect();
    let mut tree = Vec::with_capacity(blocks);
    search(&starts, &mut tree);
    filter.append(&mut tree);
    filter.extend(calls.into_iter().flat_map(|(_, block)| block));
    Ok(filter)
}

/// The filter that gives these calls one answer, whoever's numbers they are, and lets all others through.
pub fn one_answer(calls: impl IntoIterator<Item = i64>, answer: u32) -> Vec<sock_filter> {
    let calls: BTreeSet<u32> = calls.into_iter().filter_map(|call| u32::try_from(call).ok()).collect();
    let at = tree_length(calls.len());
    let starts: Vec<(u32, usize)> = calls.into_iter().map(|call| (call, at)).collect();
    let mut tree = Vec::with_capacity(at + 2);
    search(&starts, &mut tree);
    tree.insert(0, sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 });
    tree.push(sock_filter { code: ANSWER, jt: 0, jf: 0, k: answer });
    tree
}

/// How many steps [`search`] makes of so many calls.
fn tree_length(calls: usize) -> usize {
    if calls == 0 { 1 } else { 3 * calls + 2 * (calls - 1) }
}

/// Goes to the place in the filter where the rules of the call lie, or lets it through.
fn search(calls: &[(u32, usize)], tree: &mut Vec<sock_filter>) {
    let step = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    let over = |steps: usize| step(JUMP, 0, u32::try_from(steps).unwrap_or(u32::MAX));
    let through = step(ANSWER, 0, libc::SECCOMP_RET_ALLOW);
    match calls {
        [] => tree.push(through),
        [(number, block)] => {
            tree.push(step(IF_EQUAL, 1, *number));
            tree.push(over(block - tree.len() - 1));
            tree.push(through);
        }
        _ => {
            let (low, high) = calls.split_at(calls.len() / 2);
            let first = high.first().map_or(u32::MAX, |(number, _)| *number);
            tree.push(step(IF_AT_LEAST, 1, first));
            tree.push(over(tree_length(low.len())));
            search(low, tree);
            search(high, tree);
        }
    }
}

#[cfg(test)]
mod tests {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition};

    use super::*;

    /// What a filter answers, as the kernel reads it.
    fn answer(filter: &[sock_filter], number: u32, argument: u64) -> u32 {
        let mut data = [0u8; 64];
        data[0..4].copy_from_slice(&number.to_le_bytes());
        data[4..8].copy_from_slice(&0xC000_003E_u32.to_le_bytes());
        data[16..24].copy_from_slice(&argument.to_le_bytes());
        let (mut at, mut value) = (0, 0u32);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                0x20 => value = u32::from_le_bytes(data[k as usize..k as usize + 4].try_into().unwrap()),
                0x54 => value &= k,
                0x05 => at += k as usize,
                0x15 => at += jump(value == k),
                0x25 => at += jump(value > k),
                0x35 => at += jump(value >= k),
                0x06 => return k,
                other => panic!("{other:#x} is not known here"),
            }
        }
    }

    #[test]
    fn one_answer_is_for_those_alone() {
        for calls in [Vec::new(), vec![9], vec![257, 3, 9, 3, 87, 90]] {
            let filter = one_answer(calls.clone(), 77);
            for number in (0..300).chain([0x4000_0009, u32::MAX]) {
                let wanted = if calls.contains(&i64::from(number)) { 77 } else { libc::SECCOMP_RET_ALLOW };
                assert_eq!(answer(&filter, number, 0), wanted, "{number}");
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn answers_as_the_list_does() {
        let masked = |mask, value| {
            let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value);
            SeccompRule::new(vec![condition.unwrap()]).unwrap()
        };
        for count in [0, 1, 2, 3, 7, 90] {
            let rules = || -> Rules {
                let some = |number: i64| match number % 3 {
                    0 => Vec::new(),
                    1 => vec![masked(4, 4)],
                    _ => (0..8).map(|bit| masked(1 << bit, 1 << bit)).collect(),
                };
                (0..count).map(|number| (number * 5, some(number))).collect()
            };
            let arch = TargetArch::x86_64;
            let searched = filter(rules(), 7, arch).unwrap();
            let errno = libc::SECCOMP_RET_ERRNO | 7;
            let listed = (count > 0).then(|| {
                let list = SeccompFilter::new(rules(), SeccompAction::Allow, SeccompAction::Errno(7), arch).unwrap();
                Vec::<sock_filter>::try_from(list).unwrap()
            });
            for number in (0..500).chain([0x4000_0000, u32::MAX]) {
                for argument in [0, 4, 5, 1 << 29, 1 << 33, u64::MAX] {
                    let wanted = listed.as_ref().map_or(libc::SECCOMP_RET_ALLOW, |list| answer(list, number, argument));
                    assert!([errno, libc::SECCOMP_RET_ALLOW].contains(&wanted));
                    assert_eq!(answer(&searched, number, argument), wanted, "{count} {number} {argument:#x}");
                }
            }
            // Nobody's numbers but this architecture's are looked up.
            assert_eq!(searched[0].k, ARCHITECTURE);
        }
    }
}
