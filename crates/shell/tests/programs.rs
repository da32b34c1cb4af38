//! The entries of programs: what is made from them is current, and they say what the analysis takes them for.

use writ_shell::{Access, Env, FileUse, analyze, page, program, programs};

#[test]
fn the_page_is_made_from_the_entries() {
    let kept = include_str!("../../../spec/programs.md");
    assert!(kept == page(), "run `writ shell programs --page > spec/programs.md`: the page is out of date");
}

#[test]
fn every_program_is_found_by_each_of_its_names() {
    for entry in programs() {
        for name in entry.names() {
            assert_eq!(program(name).map(|found| found.names()), Some(entry.names()), "{name}");
        }
    }
    assert!(program("git add").is_some() && program("git-add").is_none() && program("").is_none());
}

#[test]
fn lines_for_people_stay_within_their_columns() {
    for entry in programs() {
        for line in entry.to_text().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

/// Every option of Writ's own that names a file, and the operands that are files for certain: `FILE` stands where it is.
#[test]
fn writs_own_commands_read_and_write_what_they_are_told() {
    let reads = "
        step run qc -m FILE -- true|step run qc -mFILE -- true|step run qc --material FILE -- true|step run qc --material=FILE -- true
        step run -m FILE qc -- true|step run -p FILE qc -- make|step run qc --product=FILE -- make|--color never step run qc -m x -p FILE -- true
        init --agentfile FILE|run --policy FILE -- true|run --manifest FILE x|run --key FILE x
        agentfile lint FILE|agentfile lint --base FILE x|agentfile show FILE|agentfile project -f FILE out|agentfile decide -f FILE
        agentfile decide --base FILE|agentfile prove --child FILE --parent b|agentfile prove --child b --parent FILE
        lock FILE|tool call x -f FILE|tool list -f FILE|tool describe x --file FILE|tool events x -f FILE|sandbox test --policy FILE
        policy check FILE|policy show FILE|policy lock FILE|policy verify FILE|policy verify x --key FILE|policy test FILE|policy test --cases FILE
        policy sign --key FILE x|policy sign --cert FILE x|policy sign --bundle FILE x|policy sign --module FILE x|policy sign --pin-file FILE x
        policy sign FILE --key k|policy learn FILE|policy diff FILE b|policy diff a FILE
        keys trust FILE|keys trust --ca FILE|keys trust --sigstore FILE|decide -p FILE --tool Bash|decide --policy FILE|why -p FILE ls
        replay FILE|replay -p FILE|approve --key FILE 1|deny --key FILE 1|agentflow start --policy FILE|agentflow verify --policy FILE
        evaluate shell --parent FILE ls|evaluate terraform FILE|evaluate terraform --state FILE|evaluate mcp FILE
        attestation verify FILE|attestation verify x --registry FILE|attestation import FILE --key k|attestation import x --key FILE
        gate --require-attestation a --plan FILE|gate --require-attestation a --plan-json FILE|gate --require-attestation a --call FILE
        gate --require-attestation a --registry FILE --call c|serve --token-file FILE|serve --tls-cert FILE|serve --tls-key FILE
        claim parse FILE|claim verify --claim-file FILE --before b|claim verify --claim-file b --before FILE|claim verify --transcript FILE --before b
        build -f FILE -o x|build --source FILE -o x|build --known-token FILE -o x|build --run-manifest FILE -o x|sign --key FILE p
        sign p --identity-token-file FILE --signing-config c|sign p --signing-config FILE
        mcp serve --token-file FILE|notary run --module FILE|notary run --pin-file FILE
        verify --key FILE x|verify --trust FILE x|verify --transcript FILE x|verify --vsa-key FILE x|ledger show FILE|ledger verify FILE";
    let writes = "
        run -o FILE -- true|run --output FILE -- true|agentfile new FILE|agentfile fmt FILE|agentfile project FILE|lock -o FILE|policy new FILE
        policy sign x --key k -o FILE|policy learn -o FILE|policy learn --notes FILE|policy add -p FILE rule|policy add --policy FILE rule
        keys generate FILE|evaluate shell --attest-to FILE ls|attestation fetch x --from u -o FILE|attestation export --to FILE
        build -o FILE dir|pull ref -o FILE|export -o FILE|export -oFILE|verify --vsa FILE x|verify --results FILE x|report -o FILE
        man FILE|consequences pages FILE|demo --keep FILE";
    for (lines, access) in [(reads, Access::Read), (writes, Access::Write)] {
        for line in lines.lines().flat_map(|line| line.trim().split('|')).filter(|line| !line.is_empty()) {
            let found = analyze(&format!("writ {}", line.replace("FILE", "named")), &Env::default());
            let targets = found.arrivals.iter().map(|arrival| &arrival.target);
            let mut uses = found.files.iter().chain(targets).filter(|file| file.access == access);
            assert!(uses.any(|file| file.path.literal().as_deref() == Some("named")), "{line}: {found:#?}");
        }
    }
    // So do all whose command stands behind dashes: in front of them options may follow operands.
    let found = analyze("aws-vault exec profile --env-file named -- true", &Env::default());
    assert!(found.files.iter().any(|file| file.path.literal().as_deref() == Some("named")), "{found:#?}");
    // What stands behind the dashes is the command's own, whatever its options are called.
    let found = analyze("writ step run qc -m src -- tar -m -p named", &Env::default());
    let named = |file: &&FileUse| file.path.literal().as_deref() == Some("src") && file.tree;
    assert!(found.files.iter().any(|file| named(&file)) && found.commands.len() == 2, "{found:#?}");
}
