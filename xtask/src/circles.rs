//! Checks that the files of a crate do not import each other in circles: never across folders, and within a
//! folder only in pairs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use syn::{Attribute, Item, ItemUse, Macro, UseTree, Visibility, visit::Visit};

use crate::workspace;

/// The crates with files in layers.
const CRATES: [&str; 16] = [
    "limiter-capture",
    "limiter-common",
    "limiter-ebpf",
    "limiter-names",
    "limiter-native",
    "limiter-policy",
    "limiter-datapath",
    "limiter-daemon",
    "limiter-host",
    "limiter-offline",
    "limiter-protocol",
    "limiter-report",
    "limiter-reputation",
    "limiter-userspace",
    "limiter-web",
    "dev/bench",
];

/// A path of modules and of an item in the last one, from the crate's root.
type Names = Vec<String>;

/// A module without its tests.
struct Module {
    file: PathBuf,
    /// The paths that it imports and names, as written.
    names: BTreeSet<Names>,
    /// The imported paths, by their local names.
    imported: BTreeMap<String, Names>,
}

/// The modules of a crate.
struct Modules(BTreeMap<Names, Module>);

impl Modules {
    fn read(source: &Path) -> Result<Self> {
        let mut modules = Self(BTreeMap::new());
        let roots = ["lib.rs", "main.rs"].map(|root| source.join(root));
        let root = roots.into_iter().find(|root| root.exists());
        modules.add_file(Names::new(), root.context("a crate without a root")?)?;
        Ok(modules)
    }

    fn add_file(&mut self, module: Names, file: PathBuf) -> Result<()> {
        let cannot_read = || format!("cannot read {}", file.display());
        let text = fs::read_to_string(&file).with_context(cannot_read)?;
        let items = syn::parse_file(&text).with_context(cannot_read)?.items;
        self.add(module, file, items)
    }

    fn add(&mut self, module: Names, file: PathBuf, items: Vec<Item>) -> Result<()> {
        let mut named = NamedPaths::default();
        for item in items {
            match item {
                Item::Mod(inner) if !is_for_tests(&inner.attrs) => {
                    let name = inner.ident.to_string();
                    let child = [module.clone(), vec![name.clone()]].concat();
                    match inner.content {
                        Some((_, items)) => self.add(child, file.clone(), items)?,
                        None => self.add_file(child, file_of(&file, &name))?,
                    }
                }
                Item::Mod(_) => {}
                item => named.visit_item(&item),
            }
        }
        let read = Module {
            file,
            names: named.dependencies(),
            imported: named.imported,
        };
        self.0.insert(module, read);
        Ok(())
    }

    /// Resolves a path in a module; `None`: it leads to another crate, or to the module itself.
    fn find(&self, module: &Names, names: &[String]) -> Option<Names> {
        let (first, rest) = names.split_first()?;
        let from = match first.as_str() {
            "crate" => Names::new(),
            "self" => module.clone(),
            "super" => {
                let parent = module.split_last()?.1.to_vec();
                // A further `super`, or an item of the parent.
                return self
                    .find(&parent, rest)
                    .or_else(|| Some([parent, rest.to_vec()].concat()));
            }
            name => {
                let child = [module.clone(), vec![name.to_owned()]].concat();
                if self.0.contains_key(&child) {
                    child
                } else {
                    let imported = self.0.get(module)?.imported.get(name)?;
                    if imported.as_slice() == names {
                        return None;
                    }
                    self.find(module, imported)?
                }
            }
        };
        Some([from, rest.to_vec()].concat())
    }

    /// Returns the module that defines an item, through re-exports.
    fn owner(&self, names: &Names) -> Names {
        let mut module = names.clone();
        while !self.0.contains_key(&module) {
            module.pop();
        }
        let passed_on = names.get(module.len()).and_then(|name| {
            let imported = self.0[&module].imported.get(name)?;
            self.find(&module, imported)
        });
        match passed_on {
            Some(from) if from != names[..=module.len()] => {
                self.owner(&[from, names[module.len() + 1..].to_vec()].concat())
            }
            _ => module,
        }
    }

    /// Returns each file's dependencies.
    fn files(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut files: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (name, module) in &self.0 {
            let found = module
                .names
                .iter()
                .filter_map(|names| self.find(name, names));
            let from = found.map(|names| self.0[&self.owner(&names)].file.as_path());
            let others = from.filter(|file| *file != module.file);
            files
                .entry(module.file.as_path())
                .or_default()
                .extend(others);
        }
        files
    }
}

/// The paths that a module names outside of its tests.
#[derive(Default)]
struct NamedPaths {
    names: BTreeSet<Names>,
    /// The first name of each path.
    first: BTreeSet<String>,
    imported: BTreeMap<String, Names>,
    /// The local names of its re-exports of items of its own modules.
    passed_on: BTreeSet<String>,
}

impl NamedPaths {
    /// Returns the paths that the module depends on. A re-export alone is not a dependency.
    fn dependencies(&self) -> BTreeSet<Names> {
        let used = self.passed_on.intersection(&self.first);
        let used = used.map(|name| self.imported[name].clone());
        self.names.iter().cloned().chain(used).collect()
    }

    fn add(&mut self, names: Names) {
        self.first.extend(names.first().cloned());
        if names.len() > 1 {
            self.names.insert(names);
        }
    }

    fn import(&mut self, tree: &UseTree, before: &Names, is_passed_on: bool) {
        let with = |name: &syn::Ident| [before.clone(), vec![name.to_string()]].concat();
        let (name, names) = match tree {
            UseTree::Path(path) => {
                return self.import(&path.tree, &with(&path.ident), is_passed_on);
            }
            UseTree::Group(group) => {
                let items = group.items.iter();
                return items.for_each(|item| self.import(item, before, is_passed_on));
            }
            UseTree::Name(one) if one.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.clone())
            }
            UseTree::Name(one) => (one.ident.to_string(), with(&one.ident)),
            UseTree::Rename(one) if one.ident == "self" => (one.rename.to_string(), before.clone()),
            UseTree::Rename(one) => (one.rename.to_string(), with(&one.ident)),
            UseTree::Glob(_) => (String::new(), before.clone()),
        };
        if is_passed_on && names.first().is_some_and(|first| first == "self") {
            self.passed_on.insert(name.clone());
        } else {
            self.names.insert(names.clone());
        }
        self.imported.insert(name, names);
    }
}

impl<'a> Visit<'a> for NamedPaths {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if !is_for_tests(&item.attrs) {
            let is_passed_on = !matches!(item.vis, Visibility::Inherited);
            self.import(&item.tree, &Names::new(), is_passed_on);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments = path.segments.iter();
        self.add(segments.map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    /// Adds everything that looks like a path in a macro's definition or arguments.
    fn visit_macro(&mut self, mac: &'a Macro) {
        let text: String = mac.tokens.to_string();
        let text = text
            .replace('$', " ")
            .replace(" ::", "::")
            .replace(":: ", "::");
        let is_of_path = |letter: char| letter.is_alphanumeric() || "_:".contains(letter);
        for path in text.split(|letter| !is_of_path(letter)) {
            let names = path.split("::").filter(|name| !name.is_empty());
            self.add(names.map(str::to_owned).collect());
        }
        syn::visit::visit_macro(self, mac);
    }

    /// `pub(in crate::daemon)` is not a dependency.
    fn visit_visibility(&mut self, _: &'a Visibility) {}
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Returns the file of a module that `parent` declares.
fn file_of(parent: &Path, name: &str) -> PathBuf {
    let alone = folder(parent).join(name).with_extension("rs");
    if alone.exists() {
        alone
    } else {
        folder(parent).join(name).join("mod.rs")
    }
}

/// Returns the folder of a file's own modules.
fn folder(file: &Path) -> PathBuf {
    let parent = file.parent().unwrap_or(file);
    match file.file_stem() {
        Some(name) if ["lib", "main", "mod"].iter().all(|root| name != *root) => parent.join(name),
        _ => parent.to_owned(),
    }
}

/// Returns the folder that a file counts to: the folder of its own modules, if it exists, else its parent.
fn home(file: &Path) -> PathBuf {
    let own = folder(file);
    if own.is_dir() {
        own
    } else {
        file.parent().unwrap_or(file).to_owned()
    }
}

/// Returns the shortest chain of imports from one file to another, if any.
fn way<'f>(
    files: &BTreeMap<&'f Path, BTreeSet<&'f Path>>,
    from: &'f Path,
    to: &'f Path,
) -> Option<Vec<&'f Path>> {
    let mut ways = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last()?;
            if *last == to {
                return Some(way);
            }
            for next in files.get(last).into_iter().flatten() {
                if seen.insert(next) {
                    longer.push([way.as_slice(), &[*next]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

/// Formats a chain, one file a line, relative to the workspace.
fn shown(way: &[&Path]) -> String {
    let below = way
        .iter()
        .map(|path| path.strip_prefix(workspace::root()).unwrap_or(path));
    let below: Vec<_> = below.map(|path| path.display().to_string()).collect();
    below.join("\n  -> ")
}

/// Returns the files that a file imports, directly or through others.
fn reached_from<'f>(
    files: &BTreeMap<&'f Path, BTreeSet<&'f Path>>,
    from: &'f Path,
) -> BTreeSet<&'f Path> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        let others = files.get(file).into_iter().flatten();
        next.extend(others.filter(|other| reached.insert(**other)));
    }
    reached
}

/// Returns each set of files that all import each other, directly or through others, except for pairs in one
/// folder.
fn circles<'f>(files: &BTreeMap<&'f Path, BTreeSet<&'f Path>>) -> BTreeSet<BTreeSet<&'f Path>> {
    let reached = files
        .keys()
        .map(|file| (*file, reached_from(files, file)))
        .collect::<BTreeMap<_, _>>();
    let circles = reached.iter().map(|(file, others)| {
        let back = others.iter().filter(|other| reached[*other].contains(file));
        back.copied().collect::<BTreeSet<_>>()
    });
    let is_refused = |circle: &BTreeSet<&Path>| {
        let homes: BTreeSet<_> = circle.iter().map(|file| home(file)).collect();
        circle.len() > 2 || homes.len() > 1
    };
    circles.filter(is_refused).collect()
}

#[test]
fn no_circle_of_files() -> Result<()> {
    let mut refused = Vec::new();
    for name in CRATES {
        let source = workspace::root().join(name).join("src");
        let modules = Modules::read(&source)?;
        let files = modules.files();
        assert!(files.len() > 5, "{name} has {} files", files.len());
        for circle in circles(&files) {
            refused.extend(circle.iter().map(|file| {
                let others = files[file].intersection(&circle).copied();
                shown(&[*file].into_iter().chain(others).collect::<Vec<_>>())
            }));
        }
    }
    assert!(refused.is_empty(), "circles:\n{}", refused.join("\n"));
    Ok(())
}

/// The parts of one module of the core, such as the strategies, may depend on each other; its modules are in
/// layers.
#[test]
fn no_circle_between_modules_of_the_core() -> Result<()> {
    let source = workspace::root().join("limiter-common/src");
    let modules = Modules::read(&source)?;
    let module_of = |file: &Path| {
        let below = file.strip_prefix(&source).unwrap_or(file);
        let module = below.components().next().map(|first| source.join(first));
        module.unwrap_or_default().with_extension("")
    };
    let mut edges: BTreeSet<(PathBuf, PathBuf)> = BTreeSet::new();
    for (file, others) in modules.files() {
        edges.extend(
            others
                .iter()
                .map(|other| (module_of(file), module_of(other))),
        );
    }
    let mut graph: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for (from, to) in edges.iter().filter(|(from, to)| from != to) {
        graph.entry(from).or_default().insert(to);
    }
    assert!(graph.len() > 15, "{} modules import others", graph.len());
    let circles: Vec<_> = edges
        .iter()
        .filter(|(from, to)| from != to)
        .filter_map(|(from, to)| way(&graph, to, from).map(|way| shown(&way)))
        .collect();
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n\n"));
    Ok(())
}
