//! What servers say, as it is shown: its beginning, with a mark where it is cut.

const MOST_CHARS: usize = 100;

/// A text, or its beginning and "…": by that whoever hides secrets knows that one may be cut.
pub fn beginning(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(beginning(&"é".repeat(100)), "é".repeat(100));
        assert_eq!(beginning(&"é".repeat(101)), "é".repeat(100) + "…");
    }
}
