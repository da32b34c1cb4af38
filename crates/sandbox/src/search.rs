//! A filter that finds the rules of a system call by its number in few steps.
//!
//! Owns the search and the rules' steps: one filter is made whenever a command starts, and the library, which makes one list of all calls,
//! would take a third of what comes before the sandbox; and the kernel tries a new filter with every number that it knows, so such a list of
//! a hundred calls takes a third of a millisecond more. Its invariant: it answers as the library's list does.

use std::collections::{BTreeMap, BTreeSet};

use seccompiler::{BackendError, SeccompAction, SeccompFilter, TargetArch, sock_filter};

/// What an argument has to be. Of most the kernel looks at the lower half.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// These bits of its lower half.
    Bits {
        /// Which argument.
        argument: u8,
        /// Which bits.
        mask: u32,
        /// Their value.
        value: u32,
    },
    /// Its lower half is another number.
    Not {
        /// Which argument.
        argument: u8,
        /// The number.
        value: u32,
    },
    /// It is an address, not 0.
    Given {
        /// Which argument.
        argument: u8,
    },
}

/// Conditions that hold together.
pub type Rule = Vec<Condition>;
/// Rules by a call's number; a call without any always gets the answer.
pub type Rules = BTreeMap<i64, Vec<Rule>>;

/// `BPF_LD | BPF_W | BPF_ABS`.
const LOAD: u16 = 0x20;
/// `BPF_ALU | BPF_AND | BPF_K`.
const AND: u16 = 0x54;
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
/// `offsetof(struct seccomp_data, args)`.
const ARGUMENTS: u32 = 16;

/// The filter: what rules name is answered with their error, and all else let through. A call that two of them name is the last's.
pub fn filter(answers: &[(Rules, u32)], arch: TargetArch) -> Result<Vec<sock_filter>, BackendError> {
    // By the library too: where the numbers are another architecture's it has its own answer.
    let (allow, refuse) = (SeccompAction::Allow, SeccompAction::Errno(libc::EPERM.unsigned_abs()));
    let none = SeccompFilter::new([(0, Vec::new())].into_iter().collect(), allow, refuse, arch)?;
    let mut filter = Vec::<sock_filter>::try_from(none)?;
    let checked = filter.iter().rposition(|step| step.code == LOAD && step.k != ARCHITECTURE);
    filter.truncate(checked.map_or(0, |load| load.saturating_add(1)));
    let number = |number: &i64| u32::try_from(*number).unwrap_or(u32::MAX);
    let blocks_of = |(all, errno): &(Rules, u32)| {
        let answer = libc::SECCOMP_RET_ERRNO | errno;
        all.iter().map(|(call, rules)| (number(call), block(rules, answer))).collect::<Vec<_>>()
    };
    let calls: BTreeMap<u32, Vec<sock_filter>> = answers.iter().flat_map(blocks_of).collect();
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
    filter.extend(calls.into_values().flatten());
    Ok(filter)
}

/// What is done with one call: the answer where one of its rules holds or it has none, else it is let through.
fn block(rules: &[Rule], answer: u32) -> Vec<sock_filter> {
    let last = |k| sock_filter { code: ANSWER, jt: 0, jf: 0, k };
    let mut steps: Vec<sock_filter> = rules.iter().flat_map(|conditions| steps(conditions, last(answer))).collect();
    steps.push(last(if rules.is_empty() { answer } else { libc::SECCOMP_RET_ALLOW }));
    steps
}

/// The steps of one rule: past its answer where a condition does not hold.
fn steps(conditions: &[Condition], answer: sock_filter) -> Vec<sock_filter> {
    let mut steps = vec![answer];
    // From the last on, so that it is known how far it is to the end.
    for condition in conditions.iter().rev() {
        // A rule has few conditions, of at most four steps each.
        let out = u8::try_from(steps.len()).unwrap_or(u8::MAX);
        let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
        let half = |argument: u8, half: u32| step(LOAD, 0, 0, ARGUMENTS + 8 * u32::from(argument) + half);
        let own = match *condition {
            Condition::Bits { argument, mask: u32::MAX, value } => {
                vec![half(argument, LOW), step(IF_EQUAL, 0, out, value)]
            }
            Condition::Bits { argument, mask, value } => {
                vec![half(argument, LOW), step(AND, 0, 0, mask), step(IF_EQUAL, 0, out, value)]
            }
            Condition::Not { argument, value } => vec![half(argument, LOW), step(IF_EQUAL, out, 0, value)],
            Condition::Given { argument } => {
                vec![half(argument, LOW), step(IF_EQUAL, 0, 2, 0), half(argument, HIGH), step(IF_EQUAL, out, 0, 0)]
            }
        };
        steps.splice(0..0, own);
    }
    steps
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

/// Where the halves of an argument lie in it.
const LOW: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };
const HIGH: u32 = 4 - LOW;

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
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

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

    /// The same condition, as the library has it.
    fn listed(condition: Condition) -> SeccompCondition {
        use SeccompCmpArgLen::{Dword, Qword};
        match condition {
            Condition::Bits { argument, mask: u32::MAX, value } => {
                SeccompCondition::new(argument, Dword, SeccompCmpOp::Eq, value.into())
            }
            Condition::Bits { argument, mask, value } => {
                SeccompCondition::new(argument, Dword, SeccompCmpOp::MaskedEq(mask.into()), value.into())
            }
            Condition::Not { argument, value } => {
                SeccompCondition::new(argument, Dword, SeccompCmpOp::Ne, value.into())
            }
            Condition::Given { argument } => SeccompCondition::new(argument, Qword, SeccompCmpOp::Ne, 0),
        }
        .unwrap()
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn answers_as_the_list_does() {
        let bits = |mask, value| Condition::Bits { argument: 0, mask, value };
        let (not, given) = (Condition::Not { argument: 0, value: 4 }, Condition::Given { argument: 0 });
        for count in [0, 1, 2, 3, 7, 90] {
            let some = |number: i64| -> Vec<Rule> {
                match number % 7 {
                    0 => Vec::new(),
                    1 => vec![vec![bits(4, 4)]],
                    2 => vec![vec![not]],
                    3 => vec![vec![given]],
                    4 => vec![vec![bits(1, 1), not, given, bits(u32::MAX, 5)], vec![bits(u32::MAX, 0)]],
                    5 => vec![vec![given, not, bits(6, 0)], vec![not, bits(8, 8)]],
                    _ => (0..8).map(|bit| vec![bits(1 << bit, 1 << bit)]).collect(),
                }
            };
            let rules: Rules = (0..count).map(|number| (number * 5, some(number))).collect();
            let arch = TargetArch::x86_64;
            let searched = filter(&[(rules.clone(), 7)], arch).unwrap();
            // The others' numbers change nothing for these.
            let others: Rules = [(1, Vec::new()), (451, vec![vec![not]])].into_iter().collect();
            let beside = filter(&[(others, 8), (rules.clone(), 7)], arch).unwrap();
            let errno = libc::SECCOMP_RET_ERRNO | 7;
            let list = (count > 0).then(|| {
                let rule = |rule: &Rule| SeccompRule::new(rule.iter().map(|each| listed(*each)).collect()).unwrap();
                let rules = rules.iter().map(|(number, rules)| (*number, rules.iter().map(rule).collect())).collect();
                let list = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(7), arch).unwrap();
                Vec::<sock_filter>::try_from(list).unwrap()
            });
            for number in (0..500).chain([0x4000_0000, u32::MAX]) {
                for argument in [0, 1, 4, 5, 13, 1 << 29, 1 << 33, (1 << 33) + 5, u64::MAX] {
                    let wanted = list.as_ref().map_or(libc::SECCOMP_RET_ALLOW, |list| answer(list, number, argument));
                    assert!([errno, libc::SECCOMP_RET_ALLOW].contains(&wanted));
                    assert_eq!(answer(&searched, number, argument), wanted, "{count} {number} {argument:#x}");
                    let wanted = match number {
                        1 => libc::SECCOMP_RET_ERRNO | 8,
                        451 if argument as u32 != 4 => libc::SECCOMP_RET_ERRNO | 8,
                        _ => wanted,
                    };
                    assert_eq!(answer(&beside, number, argument), wanted, "{count} {number} {argument:#x} beside");
                }
            }
            // Nobody's numbers but this architecture's are looked up.
            assert_eq!(searched[0].k, ARCHITECTURE);
        }
    }
}
