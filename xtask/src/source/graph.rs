//! Edges between the files of a crate, and circles among them.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Import, Path};
use super::{Crate, Module};

/// Bound on re-exports of re-exports.
const MAX_HOPS: usize = 12;

/// Use of an item of one file in another; files are positions in `Crate::modules`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// First line that uses it.
    pub(crate) line: usize,
}

/// Returns the edges between files. An edge leads to the file that defines an item, also through
/// re-exports. `mod x;` and the re-export of an own descendant are no edges.
pub(crate) fn edges(crate_: &Crate) -> Vec<Edge> {
    let resolver = Resolver::new(&crate_.modules);
    let mut lines: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (from, module) in crate_.modules.iter().enumerate() {
        let mut add = |target: Option<Target>, line: usize, is_reexport: bool| {
            let Some(Target { module: to, .. }) = target.filter(|target| target.is_item) else {
                return;
            };
            let is_own = crate_.modules[to].path.starts_with(&module.path);
            if to != from && !(is_reexport && is_own) {
                let first = lines.entry((from, to)).or_insert(line);
                *first = line.min(*first);
            }
        };
        for import in &module.facts.imports {
            let target = resolver
                .resolve_path(from, &import.path)
                .map(|target| Target {
                    is_item: target.is_item || import.name == "*",
                    ..target
                });
            add(target, import.path.line, import.is_public);
        }
        for path in &module.facts.paths {
            add(resolver.resolve_path(from, path), path.line, false);
        }
    }
    lines
        .into_iter()
        .map(|((from, to), line)| Edge { from, to, line })
        .collect()
}

/// Returns the groups of nodes that reach each other, each in order.
pub(crate) fn circles<N: Ord + Clone>(edges: &BTreeSet<(N, N)>) -> Vec<Vec<N>> {
    let mut targets: BTreeMap<&N, Vec<&N>> = BTreeMap::new();
    for (from, to) in edges {
        targets.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&N, BTreeSet<&N>> = targets
        .keys()
        .map(|start| (*start, reach(*start, &targets)))
        .collect();
    let mut found: Vec<Vec<N>> = Vec::new();
    for (node, others) in &reached {
        let is_known = found.iter().any(|circle| circle.contains(node));
        if others.contains(node) && !is_known {
            let is_mutual =
                |other: &&&N| reached.get(**other).is_some_and(|back| back.contains(node));
            found.push(
                others
                    .iter()
                    .filter(is_mutual)
                    .map(|n| (*n).clone())
                    .collect(),
            );
        }
    }
    found
}

fn reach<'n, N: Ord>(start: &'n N, targets: &BTreeMap<&'n N, Vec<&'n N>>) -> BTreeSet<&'n N> {
    let mut seen = BTreeSet::new();
    let mut pending = vec![start];
    while let Some(node) = pending.pop() {
        for next in targets.get(node).into_iter().flatten() {
            if seen.insert(*next) {
                pending.push(next);
            }
        }
    }
    seen
}

/// File that a path leads to.
#[derive(Debug, Clone, Copy)]
struct Target {
    module: usize,
    /// The path names an item in the file, and not the module itself.
    is_item: bool,
}

struct Resolver<'a> {
    modules: &'a [Module],
    files: BTreeMap<&'a [String], usize>,
}

impl<'a> Resolver<'a> {
    fn new(modules: &'a [Module]) -> Self {
        let files = modules
            .iter()
            .enumerate()
            .map(|(place, module)| (module.path.as_slice(), place))
            .collect();
        Self { modules, files }
    }

    /// Returns the file of this crate that defines what `path` names; `None` outside the crate.
    fn resolve_path(&self, from: usize, path: &Path) -> Option<Target> {
        self.resolve_written(from, path, 0)
    }

    fn resolve_written(&self, from: usize, path: &Path, hops: usize) -> Option<Target> {
        let own = &self.modules[from].path;
        let mut base = [own.as_slice(), &path.scope].concat();
        let mut rest = path.segments.as_slice();
        let mut is_anchored = false;
        while let [first, tail @ ..] = rest {
            match first.as_str() {
                "crate" => base.clear(),
                "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            is_anchored = true;
            rest = tail;
        }
        if is_anchored {
            return self.resolve(&[base.as_slice(), rest].concat(), hops);
        }
        let first = rest.first()?;
        let child = [base.as_slice(), std::slice::from_ref(first)].concat();
        if self.files.contains_key(child.as_slice()) {
            return self.resolve(&[base.as_slice(), rest].concat(), hops);
        }
        let import = self.import(from, first)?;
        let is_itself = import.path.segments.first() == Some(first) && import.path == *path;
        (!is_itself)
            .then(|| self.follow(from, import, &rest[1..], hops))
            .flatten()
    }

    /// Resolves names from the root of the crate down.
    fn resolve(&self, names: &[String], hops: usize) -> Option<Target> {
        let depth = (0..=names.len())
            .rev()
            .find(|depth| self.files.contains_key(&names[..*depth]))?;
        let module = self.files[&names[..depth]];
        let Some((name, rest)) = names[depth..].split_first() else {
            let is_item = false;
            return Some(Target { module, is_item });
        };
        let own = Target {
            module,
            is_item: true,
        };
        if self.defines(module, name) {
            return Some(own);
        }
        if let Some(import) = self.import(module, name) {
            return self.follow(module, import, rest, hops);
        }
        let through_glob = self.modules[module]
            .facts
            .imports
            .iter()
            .filter(|import| import.name == "*" && hops < MAX_HOPS)
            .filter_map(|glob| self.resolve_written(module, &glob.path, hops + 1))
            .find(|target| self.defines(target.module, name));
        Some(through_glob.map_or(own, |target| Target {
            is_item: true,
            ..target
        }))
    }

    /// Resolves `rest` below what `import` of a file binds.
    fn follow(
        &self,
        module: usize,
        import: &Import,
        rest: &[String],
        hops: usize,
    ) -> Option<Target> {
        if hops >= MAX_HOPS {
            return None;
        }
        let mut path = import.path.clone();
        path.segments.extend_from_slice(rest);
        self.resolve_written(module, &path, hops + 1)
    }

    fn import(&self, module: usize, name: &str) -> Option<&'a Import> {
        let imports = &self.modules[module].facts.imports;
        imports.iter().find(|import| import.name == name)
    }

    fn defines(&self, module: usize, name: &str) -> bool {
        let definitions = &self.modules[module].facts.definitions;
        definitions.iter().any(|definition| {
            let is_file = definition.keyword == "mod"
                && self.files.contains_key(
                    [
                        self.modules[module].path.as_slice(),
                        std::slice::from_ref(&definition.name),
                    ]
                    .concat()
                    .as_slice(),
                );
            definition.name == name && !is_file
        })
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
