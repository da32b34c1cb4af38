//! Sorts the tables by name, so that a hook finds a program in them without reading them first.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    for table in ["outputs", "programs", "projects", "runs"] {
        let path = format!("data/{table}.txt");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path)?;
        let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let halves = line.split_once(" |").or_else(|| line.split_once(" = "));
            let (names, rest) = halves.ok_or_else(|| format!("{path}: no columns: {line}"))?;
            rows.extend(names.split(',').map(|name| (name, rest.splitn(3, '|').map(str::trim).collect())));
        }
        rows.sort_unstable();
        let rows: String = rows.iter().map(|(name, columns)| format!("({name:?}, &{columns:?}),\n")).collect();
        fs::write(Path::new(&out).join(table), format!("&[{rows}]"))?;
    }
    Ok(())
}
