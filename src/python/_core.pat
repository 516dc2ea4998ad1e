# What the stub generator cannot know: raw slots have no signatures, and a dotted default reads as a module there.

\bCarrier\.__getitem__$:
    \from typing import SupportsIndex
    def __getitem__(self, index: SupportsIndex, /) -> float | int | bool: ...

\bCarrier\.__setitem__$:
    \from typing import SupportsFloat, SupportsIndex
    def __setitem__(self, index: SupportsIndex, value: SupportsFloat | SupportsIndex, /) -> None: ...

\bCarrier\.__len__$:
    def __len__(self) -> int: ...

\bCarrier\.__iter__$:
    \from collections.abc import Iterator
    def __iter__(self) -> Iterator[float | int | bool]: ...

\b(Carrier|CPU|Generic|FileBacked|Metal|Evictable|Tensor)\.(__delitem__|__init_subclass__)$:

\bTensor\.__getitem__$:
    \from typing import Any
    def __getitem__(self, key: Any, /) -> float | int | bool: ...

\bTensor\.__setitem__$:
    \from typing import Any, SupportsFloat, SupportsIndex
    def __setitem__(self, key: Any, value: SupportsFloat | SupportsIndex, /) -> None: ...

\bCPU\.__init__$:
    \from typing import SupportsIndex
    def __init__(self, size: SupportsIndex, pointer: int | None = None, *, mutable: bool = True, dtype: DType = DType.Float32, empty: bool = False) -> None: ...

\bMetal\.__init__$:
    \from typing import SupportsIndex
    def __init__(self, size: SupportsIndex, *, mutable: bool = True, dtype: DType = DType.Float32, empty: bool = False) -> None: ...

# The module's version, which stub generation leaves out.
_core\.__suffix__$:
    __version__: str
