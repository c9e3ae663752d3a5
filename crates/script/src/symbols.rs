//! Variables: names, slots, and the values they begin with. The scripts of one workload share one table, because a
//! client's variables outlive its scripts.

use crate::program::Slot;
use crate::sample::Sample;
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Variables that every client has, whatever `-D` says; the engine fills them in.
pub const BUILT_IN: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];

/// Slots are 16 bits wide.
const MAX_SLOTS: usize = u16::MAX as usize;

/// The variables of a workload.
#[derive(Clone, Debug)]
pub struct Symbols {
    names: Vec<String>,
    index: BTreeMap<String, Slot>,
    initial: Vec<Value>,
    /// Has a value before the scripts begin, or some command assigns one.
    defined: Vec<bool>,
    /// Prefixes of `\gset` and `\aset`, whose variables are named by the server.
    prefixes: Vec<String>,
    /// Samples that `\\pick` draws from.
    samples: Vec<Arc<Sample>>,
}

impl Default for Symbols {
    fn default() -> Symbols {
        Symbols::new(&BTreeMap::new())
    }
}

impl Symbols {
    /// The built-in variables and those of `-D name=value`.
    pub fn new(definitions: &BTreeMap<String, Value>) -> Symbols {
        let mut symbols = Symbols {
            names: Vec::new(),
            index: BTreeMap::new(),
            initial: Vec::new(),
            defined: Vec::new(),
            prefixes: Vec::new(),
            samples: Vec::new(),
        };
        for name in BUILT_IN {
            symbols.define(name, Value::Unset);
        }
        for (name, value) in definitions {
            symbols.define(name, value.clone());
        }
        symbols
    }

    fn define(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.assigned(name) {
            self.initial[usize::from(slot)] = value;
        }
    }

    /// Gives a variable a value to begin with, unless it has one.
    pub fn preset(&mut self, name: &str, value: Value) {
        match self.slot(name) {
            Some(slot) if self.initial[usize::from(slot)] != Value::Unset => {}
            _ => self.define(name, value),
        }
    }

    /// The slot of a variable, made if need be; `None` when there is no room for more.
    pub fn intern(&mut self, name: &str) -> Option<Slot> {
        if let Some(slot) = self.slot(name) {
            return Some(slot);
        }
        if self.names.len() >= MAX_SLOTS {
            return None;
        }
        let slot = self.names.len() as Slot;
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), slot);
        self.initial.push(Value::Unset);
        self.defined.push(false);
        Some(slot)
    }

    /// Returns the slot of a variable that is assigned somewhere, and creates it if necessary. Returns `None` if there
    /// is no room for more.
    pub fn assigned(&mut self, name: &str) -> Option<Slot> {
        let slot = self.intern(name)?;
        self.defined[usize::from(slot)] = true;
        Some(slot)
    }

    /// Notes that the server names variables that begin like this.
    pub fn assigned_prefix(&mut self, prefix: &str) {
        self.prefixes.push(prefix.to_owned());
    }

    /// The slot of a variable that some script uses.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.index.get(name).copied()
    }

    /// A variable's name.
    pub fn name(&self, slot: Slot) -> &str {
        &self.names[usize::from(slot)]
    }

    /// Returns true if the variable can have a value.
    pub fn is_defined(&self, name: &str) -> bool {
        self.slot(name).is_some_and(|s| self.defined[usize::from(s)])
            || self.prefixes.iter().any(|p| name.starts_with(p.as_str()))
    }

    /// Names of all variables that can have a value, sorted.
    pub fn defined(&self) -> Vec<&str> {
        self.index.iter().filter(|(_, s)| self.defined[usize::from(**s)]).map(|(n, _)| n.as_str()).collect()
    }

    /// Lets scripts pick from a sample; one of its name is replaced.
    pub fn add_sample(&mut self, sample: Sample) {
        match self.sample(&sample.name) {
            Some(n) => self.samples[n] = Arc::new(sample),
            None => self.samples.push(Arc::new(sample)),
        }
    }

    /// The number of a sample.
    pub fn sample(&self, name: &str) -> Option<usize> {
        self.samples.iter().position(|s| s.name == name)
    }

    /// All samples, by their numbers.
    pub fn samples(&self) -> &[Arc<Sample>] {
        &self.samples
    }

    /// The values that a client's variables begin with, by slot.
    pub fn initial(&self) -> Vec<Value> {
        self.initial.clone()
    }
}

/// Returns true if a variable can have this name. Letters, digits, underscores and anything beyond ASCII are valid; the
/// first character must not be a digit.
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80)
}
