// Elements of the block KV cache, KV_BYTES each (0: none are used). Stands before the kernels that read
// or write it.

#define KV_BLOCK 32

#if KV_BYTES == 2
#define KV_ELEMENT half
#define LOAD_KV(index, from) vload_half(index, from)
#define LOAD_KV8(index, from) vload_half8(index, from)
#define STORE_KV(value, index, to) vstore_half_rte(value, index, to)
#elif KV_BYTES == 4
#define KV_ELEMENT float
#define LOAD_KV(index, from) (from)[index]
#define LOAD_KV8(index, from) vload8(index, from)
#define STORE_KV(value, index, to) (to)[index] = (value)
#endif
