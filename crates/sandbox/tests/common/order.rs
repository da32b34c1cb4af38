//! What a supervisor is asked for by a test.

use serde::{Deserialize, Serialize};
use writ_sandbox::{Confinement, Level};

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub confinement: Confinement,
    pub level: Level,
    pub program: String,
    pub arguments: Vec<String>,
    pub test: bool,
    /// All attacks, not the quick ones alone.
    pub whole: bool,
    /// What it was refused is told at its end.
    pub told: bool,
}

impl Order {
    pub fn shell(confinement: &Confinement, script: &str) -> Self {
        Self {
            confinement: confinement.clone(),
            level: Level::Full,
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            test: false,
            whole: false,
            told: false,
        }
    }
}
