//! The archive's bytes: POSIX ustar headers with nothing of the moment in them.

use tar::{EntryType, Header};

use super::BundleError;

/// Headers and contents are padded to this.
pub const BLOCK: usize = 512;
/// What ends an archive.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// The header of a plain file: mode 0644, user and group 0, no names of them, modified at 0.
pub fn header(path: &str, size: u64) -> Result<[u8; BLOCK], BundleError> {
    let mut header = Header::new_ustar();
    header.set_path(path).map_err(|source| BundleError::Path { path: path.to_owned(), source })?;
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// The size that a header tells.
pub fn size(block: &[u8; BLOCK]) -> Option<u64> {
    Header::from_byte_slice(block).entry_size().ok()
}

/// The zeros that follow a file of this size.
pub fn padding(size: u64) -> &'static [u8] {
    let rest = (size % BLOCK as u64) as usize;
    END.get(..(BLOCK - rest) % BLOCK).unwrap_or_default()
}
