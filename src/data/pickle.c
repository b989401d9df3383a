/*
 * pickle.c - reads one dictionary from a pickle of protocol 2. Untrusted input.
 *
 * Knows the opcodes that Python 2's cPickle writes for a dictionary of lists and numpy arrays
 * (their meaning: Lib/pickletools.py). Sizes are checked against the bytes left, and
 * CO_PICKLE_MAX_VALUES limits memory.
 */
#include "data/pickle.h"

#include <string.h>

#include "core/fs.h"
#include "core/mem.h"

#define PICKLE_PROTOCOL 2
#define PICKLE_MAX_NAME 64 /* bytes of the name of a module or of something in it */
/* Limit on rows and columns of an array: their product cannot overflow. */
#define PICKLE_MAX_SIDE ((int64_t)1 << 31)

/* The names that are accepted. Later versions of numpy have renamed numpy.core to numpy._core. */
typedef enum pickle_global { PICKLE_RECONSTRUCT, PICKLE_NDARRAY, PICKLE_DTYPE } pickle_global;

static const struct {
    const char *module, *name;
    pickle_global global;
} pickle_globals[] = {
    {"numpy.core.multiarray", "_reconstruct", PICKLE_RECONSTRUCT},
    {"numpy._core.multiarray", "_reconstruct", PICKLE_RECONSTRUCT},
    {"numpy", "ndarray", PICKLE_NDARRAY},
    {"numpy", "dtype", PICKLE_DTYPE},
};

typedef struct pickle_machine {
    co_pickle *out;
    co_reader in;
    const char *name;
    size_t size, values; /* bytes of the file; values pushed, memoized or appended so far */
    co_pickle_values stack, memo;
} pickle_machine;

static co_status pickle_fail(const pickle_machine *m, const char *what)
{
    return co_fail(CO_E_DATA,
                   "%s: byte %zu: %s; only pickles as in CIFAR's version for Python are read, and "
                   "nothing in them is run; fetch it again",
                   m->name, m->size - m->in.left, what);
}

static co_status pickle_short(const pickle_machine *m)
{
    return pickle_fail(m, "the pickle is cut short");
}

/* ---- values ---- */

static co_status pickle_reserve(pickle_machine *m, co_pickle_values *v, size_t n)
{
    size_t room = v->room ? v->room : 64;
    co_pickle_value *at;

    if (n > CO_PICKLE_MAX_VALUES)
        return pickle_fail(m, "too many values");
    if (n <= v->room)
        return CO_OK;
    while (room < n)
        room *= 2;
    at = co_calloc(room, sizeof(*at));
    if (!at)
        return CO_E_NOMEM;
    if (v->n)
        memcpy(at, v->at, v->n * sizeof(*at));
    co_free(v->at);
    v->at = at;
    v->room = room;
    return CO_OK;
}

static co_status pickle_append(pickle_machine *m, co_pickle_values *v, const co_pickle_value *value)
{
    if (++m->values > CO_PICKLE_MAX_VALUES)
        return pickle_fail(m, "too many values");
    CO_TRY(pickle_reserve(m, v, v->n + 1));
    v->at[v->n++] = *value;
    return CO_OK;
}

static co_status pickle_push(pickle_machine *m, co_pickle_kind kind, int64_t number)
{
    const co_pickle_value value = {.kind = kind, .number = number};

    return pickle_append(m, &m->stack, &value);
}

/* Pop the top of the stack, valid until the next push; NULL if it is a mark or there is none. */
static const co_pickle_value *pickle_pop(pickle_machine *m)
{
    if (m->stack.n == 0 || m->stack.at[m->stack.n - 1].kind == CO_PICKLE_MARK)
        return NULL;
    return &m->stack.at[--m->stack.n];
}

/* *from: index of the first value above the topmost mark. */
static co_status pickle_find_mark(size_t *from, const pickle_machine *m)
{
    for (size_t i = m->stack.n; i-- > 0;)
        if (m->stack.at[i].kind == CO_PICKLE_MARK) {
            *from = i + 1;
            return CO_OK;
        }
    return pickle_fail(m, "values without a mark");
}

static bool pickle_is_text(const co_pickle_value *value, const char *text)
{
    return value->kind == CO_PICKLE_STRING && value->n == strlen(text) &&
           memcmp(value->at, text, value->n) == 0;
}

/* ---- reading ---- */

/* A little-endian number of `bytes` bytes. */
static co_status pickle_number(uint64_t *out, pickle_machine *m, size_t bytes)
{
    const uint8_t *at;

    if (co_reader_bytes(&at, &m->in, bytes) != 0)
        return pickle_short(m);
    *out = 0;
    for (size_t i = bytes; i-- > 0;)
        *out = *out << 8 | at[i];
    return CO_OK;
}

static co_status pickle_push_number(pickle_machine *m, size_t bytes)
{
    uint64_t number = 0;

    CO_TRY(pickle_number(&number, m, bytes));
    return pickle_push(m, CO_PICKLE_INT, bytes == 4 ? (int32_t)(uint32_t)number : (int64_t)number);
}

/* A string, after its length in `bytes` bytes. */
static co_status pickle_push_string(pickle_machine *m, size_t bytes)
{
    co_pickle_value value = {.kind = CO_PICKLE_STRING};
    uint64_t n = 0;

    CO_TRY(pickle_number(&n, m, bytes));
    value.n = (size_t)n;
    if (n > INT32_MAX || co_reader_bytes(&value.at, &m->in, value.n) != 0)
        return pickle_short(m);
    return pickle_append(m, &m->stack, &value);
}

static co_status pickle_line(char out[PICKLE_MAX_NAME], pickle_machine *m)
{
    for (size_t i = 0; i < PICKLE_MAX_NAME; i++) {
        uint8_t c;

        if (co_reader_u8(&c, &m->in) != 0)
            return pickle_short(m);
        out[i] = c == '\n' ? '\0' : (char)c;
        if (c == '\n')
            return CO_OK;
    }
    return pickle_fail(m, "a name that is too long");
}

static co_status pickle_push_global(pickle_machine *m)
{
    char module[PICKLE_MAX_NAME], name[PICKLE_MAX_NAME];

    CO_TRY(pickle_line(module, m));
    CO_TRY(pickle_line(name, m));
    for (size_t i = 0; i < sizeof(pickle_globals) / sizeof(pickle_globals[0]); i++)
        if (strcmp(module, pickle_globals[i].module) == 0 &&
            strcmp(name, pickle_globals[i].name) == 0)
            return pickle_push(m, CO_PICKLE_GLOBAL, pickle_globals[i].global);
    return pickle_fail(m, "names something that is no array of numpy");
}

/* ---- memo ---- */

static co_status pickle_put(pickle_machine *m, size_t bytes)
{
    uint64_t i = 0;

    CO_TRY(pickle_number(&i, m, bytes));
    if (m->stack.n == 0 || m->stack.at[m->stack.n - 1].kind == CO_PICKLE_MARK)
        return pickle_fail(m, "nothing to keep");
    if (++m->values > CO_PICKLE_MAX_VALUES || i >= CO_PICKLE_MAX_VALUES)
        return pickle_fail(m, "too many values");
    CO_TRY(pickle_reserve(m, &m->memo, (size_t)i + 1));
    if (i >= m->memo.n)
        m->memo.n = (size_t)i + 1; /* skipped entries are NONE */
    m->memo.at[i] = m->stack.at[m->stack.n - 1];
    return CO_OK;
}

static co_status pickle_get(pickle_machine *m, size_t bytes)
{
    uint64_t i = 0;

    CO_TRY(pickle_number(&i, m, bytes));
    if (i >= m->memo.n)
        return pickle_fail(m, "uses what was never kept");
    return pickle_append(m, &m->stack, &m->memo.at[i]);
}

/* ---- containers ---- */

static co_status pickle_push_list(pickle_machine *m)
{
    if (m->out->n_list == CO_PICKLE_MAX_LISTS)
        return pickle_fail(m, "too many lists");
    return pickle_push(m, CO_PICKLE_LIST, (int64_t)m->out->n_list++);
}

static co_status pickle_push_dict(pickle_machine *m)
{
    if (m->out->n_dict++)
        return pickle_fail(m, "a second dictionary");
    return pickle_push(m, CO_PICKLE_DICT, 0);
}

/* The n topmost values become a tuple. */
static co_status pickle_push_tuple(pickle_machine *m, size_t n)
{
    co_pickle *out = m->out;

    if (n > CO_PICKLE_MAX_TUPLE || out->n_tuple == CO_PICKLE_MAX_TUPLES)
        return pickle_fail(m, "too large a tuple, or too many");
    for (size_t i = n; i-- > 0;) {
        const co_pickle_value *value = pickle_pop(m);

        if (!value)
            return pickle_fail(m, "a tuple of too few values");
        out->tuple[out->n_tuple][i] = *value;
    }
    out->tuple_n[out->n_tuple] = n;
    return pickle_push(m, CO_PICKLE_TUPLE, (int64_t)out->n_tuple++);
}

static co_status pickle_push_marked_tuple(pickle_machine *m)
{
    const size_t end = m->stack.n;
    size_t from = 0;

    CO_TRY(pickle_find_mark(&from, m));
    if (end - from > CO_PICKLE_MAX_TUPLE)
        return pickle_fail(m, "too large a tuple, or too many");
    memmove(&m->stack.at[from - 1], &m->stack.at[from], (end - from) * sizeof(*m->stack.at));
    m->stack.n--; /* the mark was overwritten */
    return pickle_push_tuple(m, end - from);
}

/* Append the values from index `from` on to the list below them, or below their mark. */
static co_status pickle_extend(pickle_machine *m, size_t from, bool marked)
{
    const size_t below = marked ? 2 : 1, end = m->stack.n;

    if (from < below || m->stack.at[from - below].kind != CO_PICKLE_LIST)
        return pickle_fail(m, "values for a list that is not there");
    for (size_t i = from; i < end; i++)
        CO_TRY(pickle_append(m, &m->out->list[m->stack.at[from - below].number], &m->stack.at[i]));
    m->stack.n = from - below + 1;
    return CO_OK;
}

/* The same for keys and values, and the dictionary. */
static co_status pickle_update(pickle_machine *m, size_t from, bool marked)
{
    const size_t below = marked ? 2 : 1, end = m->stack.n;
    co_pickle *out = m->out;

    if (from < below || m->stack.at[from - below].kind != CO_PICKLE_DICT || (end - from) % 2)
        return pickle_fail(m, "values for a dictionary that is not there");
    for (size_t i = from; i < end; i += 2) {
        if (out->n_key == CO_PICKLE_MAX_KEYS || m->stack.at[i].kind != CO_PICKLE_STRING)
            return pickle_fail(m, "a key that is no string, or too many keys");
        out->key[out->n_key] = m->stack.at[i];
        out->value[out->n_key++] = m->stack.at[i + 1];
    }
    m->stack.n = from - below + 1;
    return CO_OK;
}

static co_status pickle_fill(pickle_machine *m, uint8_t op)
{
    const size_t one = op == 'a' ? 1 : 2;
    size_t from = 0;

    if (op == 'a' || op == 's') {
        if (m->stack.n < one)
            return pickle_fail(m, "too few values");
        from = m->stack.n - one;
        return op == 'a' ? pickle_extend(m, from, false) : pickle_update(m, from, false);
    }
    CO_TRY(pickle_find_mark(&from, m));
    return op == 'e' ? pickle_extend(m, from, true) : pickle_update(m, from, true);
}

/* ---- numpy's arrays of bytes ---- */

/* dtype("u1", ...), or _reconstruct(ndarray, (0,), "b"), whose contents follow. */
static co_status pickle_reduce(pickle_machine *m)
{
    const co_pickle_value *args = pickle_pop(m), *function = args ? pickle_pop(m) : NULL;
    const co_pickle_value *arg;
    size_t n;

    if (!function || args->kind != CO_PICKLE_TUPLE || function->kind != CO_PICKLE_GLOBAL)
        return pickle_fail(m, "calls something");
    arg = m->out->tuple[args->number];
    n = m->out->tuple_n[args->number];
    if (function->number == PICKLE_DTYPE && n >= 1 &&
        (pickle_is_text(arg, "u1") || pickle_is_text(arg, "|u1")))
        return pickle_push(m, CO_PICKLE_BYTE_TYPE, 0);
    if (function->number != PICKLE_RECONSTRUCT || n != 3 || arg->kind != CO_PICKLE_GLOBAL ||
        arg->number != PICKLE_NDARRAY)
        return pickle_fail(m, "an array that is not of uint8");
    if (m->out->n_array == CO_PICKLE_MAX_ARRAYS)
        return pickle_fail(m, "too many arrays");
    return pickle_push(m, CO_PICKLE_ARRAY, (int64_t)m->out->n_array++);
}

/* State of an array: (version, (rows, columns), dtype, whether column-major, bytes). */
static co_status pickle_build_array(pickle_machine *m, co_pickle_array *array, const int64_t state)
{
    const co_pickle_value *part = m->out->tuple[state], *side;

    if (m->out->tuple_n[state] != 5 || part[1].kind != CO_PICKLE_TUPLE ||
        part[2].kind != CO_PICKLE_BYTE_TYPE || part[3].kind != CO_PICKLE_BOOL ||
        part[4].kind != CO_PICKLE_STRING || m->out->tuple_n[part[1].number] != 2 || array->at)
        return pickle_fail(m, "an array that is not rows of uint8");
    side = m->out->tuple[part[1].number];
    for (int i = 0; i < 2; i++)
        if (side[i].kind != CO_PICKLE_INT || side[i].number < 1 || side[i].number > PICKLE_MAX_SIDE)
            return pickle_fail(m, "an array that is not rows of uint8");
    if ((uint64_t)side[0].number * (uint64_t)side[1].number != part[4].n)
        return pickle_fail(m, "an array of more or fewer bytes than its shape says");
    *array = (co_pickle_array){.at = part[4].at,
                               .rows = (uint64_t)side[0].number,
                               .columns = (uint64_t)side[1].number,
                               .fortran = part[3].number != 0};
    return CO_OK;
}

/* Apply the state on top of the stack to the object below, which stays there. */
static co_status pickle_build(pickle_machine *m)
{
    const co_pickle_value *state = pickle_pop(m);
    const co_pickle_value *object = state && m->stack.n ? &m->stack.at[m->stack.n - 1] : NULL;

    if (!object || state->kind != CO_PICKLE_TUPLE)
        return pickle_fail(m, "a state without an object");
    if (object->kind == CO_PICKLE_BYTE_TYPE && m->out->tuple_n[state->number] >= 2 &&
        pickle_is_text(&m->out->tuple[state->number][1], "|"))
        return CO_OK;
    if (object->kind != CO_PICKLE_ARRAY)
        return pickle_fail(m, "the state of something that is no array");
    return pickle_build_array(m, &m->out->array[object->number], state->number);
}

/* ---- opcodes ---- */

static co_status pickle_unknown(const pickle_machine *m, uint8_t op)
{
    char what[48];

    snprintf(what, sizeof(what), "the pickle has an opcode 0x%02x", op);
    return pickle_fail(m, what);
}

static co_status pickle_step(pickle_machine *m, uint8_t op)
{
    switch (op) {
    case '(':
        return pickle_push(m, CO_PICKLE_MARK, 0);
    case 'N':
        return pickle_push(m, CO_PICKLE_NONE, 0);
    case 0x88: /* True, False */
    case 0x89:
        return pickle_push(m, CO_PICKLE_BOOL, op == 0x88);
    case 'K': /* numbers of 1, 2 and 4 bytes */
    case 'M':
    case 'J':
        return pickle_push_number(m, op == 'K' ? 1 : op == 'M' ? 2 : 4);
    case 'U': /* strings */
    case 'T':
        return pickle_push_string(m, op == 'U' ? 1 : 4);
    case 'q': /* memo: put, get */
    case 'r':
        return pickle_put(m, op == 'q' ? 1 : 4);
    case 'h':
    case 'j':
        return pickle_get(m, op == 'h' ? 1 : 4);
    case '}':
        return pickle_push_dict(m);
    case ']':
        return pickle_push_list(m);
    case ')': /* tuples of 0 to 3 values */
        return pickle_push_tuple(m, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return pickle_push_tuple(m, (size_t)op - 0x84);
    case 't':
        return pickle_push_marked_tuple(m);
    case 'a': /* append, add to the dictionary: one value or pair, or all above the mark */
    case 'e':
    case 's':
    case 'u':
        return pickle_fill(m, op);
    case 'c':
        return pickle_push_global(m);
    case 'R':
        return pickle_reduce(m);
    case 'b':
        return pickle_build(m);
    default:
        return pickle_unknown(m, op);
    }
}

static co_status pickle_run(pickle_machine *m)
{
    uint8_t op, protocol;

    if (co_reader_u8(&op, &m->in) != 0 || co_reader_u8(&protocol, &m->in) != 0)
        return pickle_short(m);
    if (op != 0x80 || protocol != PICKLE_PROTOCOL)
        return pickle_fail(m, "no pickle of protocol 2");
    for (;;) {
        if (co_reader_u8(&op, &m->in) != 0)
            return pickle_short(m);
        if (op == '.')
            break;
        CO_TRY(pickle_step(m, op));
    }
    if (m->in.left)
        return pickle_fail(m, "more bytes after the end of the pickle");
    if (m->stack.n != 1 || m->stack.at[0].kind != CO_PICKLE_DICT)
        return pickle_fail(m, "the pickle is not one dictionary");
    return CO_OK;
}

co_status co_pickle_parse(co_pickle *out, const uint8_t *bytes, size_t size, const char *name)
{
    pickle_machine m = {.out = out, .in = {bytes, size}, .name = name, .size = size};
    co_status st;

    *out = (co_pickle){.n_key = 0};
    st = pickle_run(&m);
    co_free(m.stack.at);
    co_free(m.memo.at);
    if (st != CO_OK)
        co_pickle_free(out);
    return st;
}

void co_pickle_free(co_pickle *pickle)
{
    for (size_t i = 0; i < CO_PICKLE_MAX_LISTS; i++)
        co_free(pickle->list[i].at);
    *pickle = (co_pickle){.n_key = 0};
}

static const co_pickle_value *pickle_find(const co_pickle *pickle, const char *key,
                                          co_pickle_kind kind)
{
    for (size_t i = pickle->n_key; i-- > 0;) /* as in Python, the last one of equal keys counts */
        if (pickle_is_text(&pickle->key[i], key) && pickle->value[i].kind == kind)
            return &pickle->value[i];
    return NULL;
}

const co_pickle_values *co_pickle_list(const co_pickle *pickle, const char *key)
{
    const co_pickle_value *value = pickle_find(pickle, key, CO_PICKLE_LIST);

    return value ? &pickle->list[value->number] : NULL;
}

const co_pickle_array *co_pickle_get_array(const co_pickle *pickle, const char *key)
{
    const co_pickle_value *value = pickle_find(pickle, key, CO_PICKLE_ARRAY);

    return value && pickle->array[value->number].at ? &pickle->array[value->number] : NULL;
}
