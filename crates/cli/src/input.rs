//! Files that arguments name, and standard input for `-`: read whole, or refused when they are too long.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::exit::Failure;

/// Longest input: a plan of a large estate.
const MAX_BYTES: u64 = 256 << 20;

/// The bytes of a file.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::could_not(format!("{}: {error}", file.display()));
    let mut bytes = Vec::new();
    let limit = MAX_BYTES + 1;
    if file == Path::new("-") {
        std::io::stdin().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::malformed(format!("{}: longer than {} MiB", file.display(), MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

/// The text of a file; what is not UTF-8 in it is replaced.
pub fn text(file: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&bytes(file)?).into_owned())
}

/// UTF-8, or what a Windows shell makes of it: UTF-16 with its mark.
pub fn decoded(bytes: &[u8]) -> String {
    let units = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.as_chunks().0.iter().map(|pair| read(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn a_plan_from_a_windows_shell_is_read() {
        let text = "{\"a\":\"é\"}";
        let units = |to: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to).collect::<Vec<u8>>();
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        assert_eq!(decoded(text.as_bytes()), text);
        assert_eq!(decoded(&marked(&[0xef, 0xbb, 0xbf], text.as_bytes())), text);
        assert_eq!(decoded(&marked(&[0xff, 0xfe], &units(u16::to_le_bytes))), text);
        assert_eq!(decoded(&marked(&[0xfe, 0xff], &units(u16::to_be_bytes))), text);
        assert_eq!(decoded(&[0xff, 0xfe, b'{']), "");
    }
}
