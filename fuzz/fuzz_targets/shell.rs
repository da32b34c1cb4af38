//! Any line is analysed without panic, and every span lies in the line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_shell::{Env, analyze, normal};

fuzz_target!(|line: &str| {
    let env = Env { home: Some("/home/a".to_owned()), cwd: Some("/work".to_owned()), ..Env::default() };
    let analysis = analyze(line, &env);
    let commands = analysis.commands.iter().map(|command| command.span);
    let files = analysis.files.iter().map(|file| file.span);
    for span in commands.chain(files) {
        assert!(line.get(span.start..span.end).is_some(), "{span:?} is no part of the line");
    }
    for command in &analysis.commands {
        drop(normal(&command.words));
    }
});
