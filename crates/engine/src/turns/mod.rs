//! Turns under signature.
pub mod work_tree;
