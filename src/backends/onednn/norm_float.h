/* norm_float.h - for norm_impl.h: images of floats, in vectors of LANES lanes. */
typedef float vec __attribute__((vector_size(4 * LANES), may_alias));

typedef float cell;

static inline vec norm_load(const cell *from)
{
    return *(const vec *)from;
}

static inline void norm_store(cell *to, vec value)
{
    *(vec *)to = value;
}
