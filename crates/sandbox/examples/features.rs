//! Prints what this kernel and container allow.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

fn main() {
    let start = std::time::Instant::now();
    let features = writ_sandbox::Features::probe().unwrap();
    println!("{features:#?}\n{:?} in {:?}", features.level(), start.elapsed());
}
