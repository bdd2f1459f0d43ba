//! stub until branch lang is merged
use crate::Spec;
/// The order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Memory.
    Memory,
    /// Logical.
    Logical,
}
impl Spec {
    /// The shape.
    pub fn shape(&self) -> &[u64] {
        self.inputs()[0].shape()
    }
    /// The order.
    pub fn order(&self) -> Order {
        Order::Memory
    }
}
