//! Of each phase that can fail: the rule that it holds the record to, what it looked at, and what to do.
//!
//! Owns the words that are the same for every failure of a phase; what exactly is wrong stands in its findings. Refuses to excuse: none of
//! these words says that a failure is harmless. Invariant: every phase of `spec/verify.md` is here.

use super::phase_names::{
    APPROVALS, BINDING, CUSTODY, EVALUATORS, EXPIRY, LEFT_OUT, LIMITS, MATERIALS, REQUIRED, SUBLAYOUTS, TURNS,
};

/// What there is to say of a failure beside its findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// What has to hold.
    pub rule: &'static str,
    /// Where that was looked for: files of the record, or of this machine.
    pub evidence: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

const COPY: &str = "put the files back from a copy or a bundle (`writ export`); without one the record stays broken";
const RECORD: &str =
    "what was done under this record cannot be shown: do not rely on it, and ask who could write to its folder";

/// The words for a phase.
pub fn explained(name: &str) -> Option<Explained> {
    let (rule, evidence, remedy) = match name {
        "policy" => (
            "each policy that a row names, and each layer, is kept as it was, is what its parent pins, and is no looser (R23)",
            "policies/, layers/, and the rows' `state.policy`",
            COPY,
        ),
        "rows" => ("each row is sealed to the one before (spec/ledger.md)", "ledger.jsonl", RECORD),
        "checkpoints" => (
            "each checkpoint is signed by the session's key, which the first row names (spec/checkpoint.md)",
            "checkpoints, ledger.pub",
            "bring the key of the machine that recorded (`--key`); if that is the key, the checkpoints were forged",
        ),
        CUSTODY => (
            "each key that signs was introduced by the ledger's key (spec/notary.md)",
            "the rows' `custody`, ledger.pub",
            RECORD,
        ),
        "consistency" => (
            "each checkpoint extends the one before, and the last one that this machine saw",
            "checkpoints, ledger.jsonl, this machine's heads",
            RECORD,
        ),
        "tail" => (
            "every stop, and a session's end, is covered by a checkpoint",
            "checkpoints, ledger.jsonl",
            "rows behind the last checkpoint can be anybody's: ask for the whole record",
        ),
        "bundle" => (
            "each file is as the manifest lists it, is named by the record, and the manifest is signed (spec/bundle.md)",
            "bundle.json, bundle.sig, and the files",
            "ask for the bundle again, from the machine that recorded (`writ export`)",
        ),
        "decisions" => (
            "each decision comes out the same from the recorded facts under the policy in force",
            "ledger.jsonl, policies/",
            "a row was written by something else than Writ, or by another version of it: look at the rows that are named",
        ),
        "identity" => (
            "each identity is the hash of its parts, and a sub-agent's names its parent's (R21)",
            "the rows' `identity`, identities/",
            COPY,
        ),
        APPROVALS => (
            "each human's word is signed, for this action, at this place (R71)",
            "the rows' `grant`, and keys that are trusted here",
            "trust the human's key (`writ keys trust`) if it is theirs; if not, the approval was forged",
        ),
        "verdicts" => (
            "each row that names an attested verdict rests on it (spec/consequence.md)",
            "the rows' `attestation`, attestations/, registries/",
            COPY,
        ),
        "claims" => (
            "each recorded claim has its signed statement, and says the same (spec/claims.md)",
            "the rows' `claim`, claims/",
            COPY,
        ),
        "attestations" => (
            "each statement that a row names is there, signed, of that step, and about this session (spec/statements.md)",
            "the rows' `attested`, statements/",
            COPY,
        ),
        "sandbox" => (
            "each call that was granted a sandbox ran in it (spec/sandbox.md)",
            "the rows' `sandbox`, sandboxes/",
            "look at the calls that are named: what they did was not held by the kernel",
        ),
        TURNS => (
            "each turn's statement is there, signed by the session's key, says what the rows say, and follows the one before (spec/turns.md)",
            "the rows' `turn-attested`, attestations/",
            COPY,
        ),
        BINDING => (
            "a statement's tokens, cost and model are those of the lines that it is bound to",
            "the session's transcripts, attestations/, prices/",
            "the statement was made from other lines than it names: do not rely on what it says was used",
        ),
        LEFT_OUT => {
            ("statements are held against the transcripts", "the bundle's manifest", "export with `--transcripts`")
        }
        MATERIALS => (
            "what `materialsFrom` names is as the policy says, and turns follow each other as it wants",
            "`materialsFrom` of the policy, the turns, the transcript, the work tree and the artifacts as they are now",
            "check out the state that the policy names; if the new state is right, a human accepts a policy that names it",
        ),
        SUBLAYOUTS => (
            "each sublayout's policy holds for its agents, and all agents together used no more than the parent gives",
            "layers/, policies/, the statements of sub-agents' turns",
            "see `sublayouts` in `--format json`: each phase there is of its own policy",
        ),
        EVALUATORS => (
            "every evaluator that the policy names passes (spec/evaluators.md)",
            "the statements that `attestationsFrom` names, the rule",
            "do what the reasons ask for in a new session, or, if the rule is wrong, mend the rule in a new policy",
        ),
        REQUIRED => (
            "there is a good statement for each of `requiredAttestations`",
            "the rows' `attested`, statements/",
            "run the step: `writ step run NAME -- COMMAND`",
        ),
        EXPIRY => (
            "the policy's `expires` lies behind the last row that it governed",
            "`expires` of the policy, the rows' times",
            "renew the policy, have it accepted, and run the work again under it",
        ),
        LIMITS => (
            "no more was used than the policy's `limits` give (spec/limits.md)",
            "the rows' state, the transcripts, prices/",
            "nothing undoes what was used: raise the limit for the next session, or give it less to do",
        ),
        "coverage" => (
            "every call of the transcript is on record",
            "the session's transcripts, ledger.jsonl",
            "look at the calls that are named: no policy was asked about them (`writ doctor` says whether hooks are installed)",
        ),
        _ => return None,
    };
    Some(Explained { rule, evidence, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first table of phases on the page, a name a line.
    fn named() -> Vec<&'static str> {
        let page = include_str!("../../../../spec/verify.md");
        let table = page.split_once("| phase | question | standing |").unwrap().1;
        let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        lines.flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn each_phase_of_the_page_that_can_fail_has_its_words() {
        // These are exceptions: absent, never failed.
        let never = ["requests", "false claims", "beginning", "enforcement", "denials", "transcripts"];
        let named = named();
        assert!(named.len() > 20 && named.contains(&"session binding"), "{named:?}");
        for name in named {
            assert_eq!(explained(name).is_none(), never.contains(&name), "{name}");
        }
    }
}
