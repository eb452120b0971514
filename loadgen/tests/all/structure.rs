//! How the sources hang together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Imports = BTreeMap<String, BTreeSet<String>>;

/// Every module of the library with what it is made of, tests aside.
fn sources(folder: &Path, module: &str, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let full = if module.is_empty() { name.clone() } else { format!("{module}::{name}") };
        if path.is_dir() {
            sources(&path, &full, all);
        } else if !matches!(name.as_str(), "lib" | "main") {
            let text = fs::read_to_string(&path).expect("text");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            all.insert(if name == "mod" { module.to_owned() } else { full }, text);
        }
    }
}

/// What follows `use` or stands in the code as a path from `crate` or `super`, braces opened.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (root, skipped) in [("crate::", 0), ("super::", 0)] {
        for (at, _) in text.match_indices(root) {
            let rest = &text[at + skipped..];
            let end = rest.find([';', ' ', ')', '(', '<', '>', ',', '\n']).unwrap_or(rest.len());
            let path = &rest[..end];
            match path.split_once('{') {
                None => found.push(path.to_owned()),
                Some((before, _)) => {
                    let inner = &rest[before.len() + 1..rest.find('}').unwrap_or(rest.len())];
                    found.extend(inner.split(',').map(|name| format!("{before}{}", name.trim())));
                }
            }
        }
    }
    found
}

fn imports() -> Imports {
    let mut all = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut all);
    let known: BTreeSet<String> = all.keys().cloned().collect();
    let mut imports = Imports::new();
    for (module, text) in &all {
        let into = imports.entry(module.clone()).or_default();
        for path in paths(text) {
            let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
            let absolute = match path.strip_prefix("super::") {
                Some(rest) if parent.is_empty() => rest.to_owned(),
                Some(rest) => format!("{parent}::{rest}"),
                None => path["crate::".len()..].to_owned(),
            };
            let mut target = absolute.as_str();
            while !target.is_empty() && !known.contains(target) {
                target = target.rsplit_once("::").map_or("", |(before, _)| before);
            }
            if !target.is_empty() && target != module {
                into.insert(target.to_owned());
            }
        }
    }
    // A module imports what it takes over from its own parts.
    for (module, text) in &all {
        for part in text.lines().filter_map(|line| {
            line.trim().strip_prefix("pub use ").or_else(|| line.trim().strip_prefix("use "))
        }) {
            let first = part.split("::").next().unwrap_or_default();
            let part = format!("{module}::{first}");
            if known.contains(&part) {
                imports.entry(module.clone()).or_default().insert(part);
            }
        }
    }
    imports
}

/// A way from a module back to itself.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    fn walk(
        at: &str,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        imports: &Imports,
    ) -> bool {
        if way.iter().any(|before| before == at) {
            way.push(at.to_owned());
            return true;
        }
        if !done.insert(at.to_owned()) {
            return false;
        }
        way.push(at.to_owned());
        for next in imports.get(at).into_iter().flatten() {
            if walk(next, way, done, imports) {
                return true;
            }
        }
        way.pop();
        false
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| {
        let mut way = Vec::new();
        walk(module, &mut way, &mut done, imports).then_some(way)
    })
}

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let imports = imports();
    assert!(imports["engine::driver"].contains("engine::pool"), "{imports:#?}");
    assert!(imports["order::validate"].contains("order"), "{imports:#?}");
    assert_eq!(circle(&imports), None);
}

#[test]
fn circles_are_found() {
    let imports = [("a", "b"), ("b", "c"), ("c", "a")]
        .map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])));
    assert_eq!(circle(&Imports::from(imports)).map(|way| way.len()), Some(4));
}
