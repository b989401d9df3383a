/* batchnorm_float.h - for batchnorm_impl.h: images of floats, in vectors of LANES lanes. */
typedef float cell;

static inline vec norm_load(const cell *from)
{
    return *(const vec *)from;
}

static inline void norm_store(cell *to, vec value)
{
    *(vec *)to = value;
}
