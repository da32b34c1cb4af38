//! Whether SQL for SQLite stays within its database.

/// Words that reach other files, or libraries.
const REACHING: [&str; 7] = ["attach", "vacuum", "load_extension", "readfile", "writefile", "fts3_tokenizer", "edit"];

/// Whether a text names none of them.
pub fn is_harmless(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    !lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| REACHING.contains(&word))
}
