"""What objects and classes hold themselves, read without asking them: nothing of the job's is run."""

from __future__ import annotations

from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Dict, Mapping, Optional, Tuple

_mro, _namespace = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
_name = type.__dict__["__name__"].__get__


def instance_dict(value: Any) -> Dict[str, Any]:
    """The dictionary of an object; empty for one that has none."""
    descriptor = definition(type(value), "__dict__")
    if descriptor is None or type(descriptor[1]) not in (GetSetDescriptorType, MemberDescriptorType):
        return {}
    fields = descriptor[1].__get__(value)
    return fields if type(fields) is dict else {}


def namespace(kind: type) -> Mapping[str, Any]:
    """What a class holds itself."""
    members: Mapping[str, Any] = _namespace(kind)
    return members


def full_name(kind: type) -> str:
    """`torch.utils.data.sampler.BatchSampler`."""
    module = _namespace(kind).get("__module__")
    return f"{module}.{_name(kind)}"


def definition(kind: type, name: str) -> Optional[Tuple[type, Any]]:
    """The class of which a class has an attribute, and that attribute; None where there is none."""
    for owner in _mro(kind):
        namespace = _namespace(owner)
        if name in namespace:
            return owner, namespace[name]
    return None
