/* SPDX-License-Identifier: Apache-2.0 */
/* The module seqlstm._step: a step of a stream without the interpreter, which takes most of the time of so short a call
 * and holds Python's lock meanwhile. seqlstm.Stream derives from Step. Its call computes the next step if the input
 * needs no conversion, and leaves all else, also what is wrong, to Stream._advance, which does the same in Python where
 * there is no such module. It is built for the stable interface of CPython 3.11. There Python's lock guards all that is
 * here. */
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* ---- Lock: who uses a stream --------------------------------------------------------------------------------------
 */

struct lock {
    PyObject_HEAD bool taken;
};

static PyObject *lock_acquire(PyObject *self, PyObject *blocking)
{
    struct lock *lock = (struct lock *)self;
    (void)blocking;
    if (lock->taken)
        Py_RETURN_FALSE;
    lock->taken = true;
    Py_RETURN_TRUE;
}

static PyObject *lock_release(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    ((struct lock *)self)->taken = false;
    Py_RETURN_NONE;
}

static PyMethodDef lock_methods[] = {
    {"acquire", lock_acquire, METH_O, "acquire(blocking): takes the lock, or returns False at once."},
    {"release", lock_release, METH_NOARGS, "release(): gives the lock back."},
    {0}};
static PyType_Slot lock_slots[] = {{Py_tp_methods, lock_methods}, {0, NULL}};
static PyType_Spec lock_spec = {
    .name = "seqlstm._step.Lock", .basicsize = sizeof(struct lock), .flags = Py_TPFLAGS_DEFAULT, .slots = lock_slots};

/* ---- Seat: what a thread computes with ----------------------------------------------------------------------------
 */

struct seat {
    PyObject_HEAD void *context;
    void *error; /* its error record */
};

/* The seat with which the running thread computed last, and the number of its predictor. Python keeps the seat with the
 * context, as long as the thread and the predictor are there. */
static _Thread_local struct {
    unsigned long long predictor; /* 0: none */
    const struct seat *seat;
} last;

static int seat_init(PyObject *self, PyObject *args, PyObject *names)
{
    static char *keys[] = {"context", "error", NULL};
    unsigned long long context, error;
    if (!PyArg_ParseTupleAndKeywords(args, names, "KK", keys, &context, &error))
        return -1;
    ((struct seat *)self)->context = (void *)(uintptr_t)context;
    ((struct seat *)self)->error = (void *)(uintptr_t)error;
    return 0;
}

/* A thread that ends frees its seats, and may then run destructors of the program, which may call streams. */
static void seat_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (last.seat == (struct seat *)self)
        last.predictor = 0;
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot seat_slots[] = {{Py_tp_init, seat_init}, {Py_tp_dealloc, seat_dealloc}, {0, NULL}};
static PyType_Spec seat_spec = {
    .name = "seqlstm._step.Seat", .basicsize = sizeof(struct seat), .flags = Py_TPFLAGS_DEFAULT, .slots = seat_slots};

/* ---- Step ---------------------------------------------------------------------------------------------------------
 */

typedef int32_t (*step_fn)(void *context, void *stream, const void *x, int64_t steps, void *y, void *error);

struct step {
    PyObject_HEAD step_fn function; /* seqlstm_stream_step */
    void *stream;
    unsigned long long predictor; /* its number, which no other predictor of the process gets */
    Py_ssize_t bytes;             /* of a step */
    PyObject *dtype, *outputs;    /* of the input; how many values a step gives */
    PyObject *find_seat;          /* of the running thread: (Seat) -> a seat, of this type */
    PyObject *lock;               /* a struct lock */
};

static PyTypeObject *lock_type, *seat_type;
static PyObject *array_type, *empty, *float32, *dtype_name; /* numpy's, and "dtype" */

static bool *find_taken(const struct step *step)
{
    return &((struct lock *)step->lock)->taken;
}

static bool choose_seat(const struct step *step)
{
    if (last.predictor == step->predictor)
        return true;
    PyObject *found = PyObject_CallFunctionObjArgs(step->find_seat, (PyObject *)seat_type, NULL);
    if (found == NULL)
        return false;
    const bool fits = Py_TYPE(found) == seat_type && Py_REFCNT(found) > 1;
    if (fits) {
        last.predictor = step->predictor;
        last.seat = (struct seat *)found;
    } else {
        PyErr_SetString(PyExc_TypeError, "find_seat gave no seat that is kept");
    }
    Py_DECREF(found);
    return fits;
}

/* Gets the memory of an array which is one step as the library reads it. False, without an exception: it is not. */
static bool get_step(const struct step *step, PyObject *x, Py_buffer *in)
{
    PyObject *dtype = (PyObject *)Py_TYPE(x) == array_type ? PyObject_GetAttr(x, dtype_name) : NULL;
    const bool fits = dtype != NULL && dtype == step->dtype;
    Py_XDECREF(dtype);
    if (!fits || PyObject_GetBuffer(x, in, PyBUF_ND) != 0) {
        PyErr_Clear();
        return false;
    }
    if (in->ndim == 1 && in->len == step->bytes)
        return true;
    PyBuffer_Release(in);
    return false;
}

/* Computes the step into y. */
static PyObject *run(struct step *step, const void *x, PyObject *y)
{
    Py_buffer out;
    int32_t status;
    if (PyObject_GetBuffer(y, &out, PyBUF_WRITABLE) != 0)
        return NULL;
    const struct seat *seat = last.seat;
    *find_taken(step) = true;
    Py_BEGIN_ALLOW_THREADS;
    status = step->function(seat->context, step->stream, x, 1, out.buf, seat->error);
    Py_END_ALLOW_THREADS;
    *find_taken(step) = false;
    PyBuffer_Release(&out);
    return status == 0 ? Py_NewRef(y) : PyObject_CallMethod((PyObject *)step, "_fail", "i", (int)status);
}

static PyObject *step_call(PyObject *self, PyObject *args, PyObject *names)
{
    struct step *step = (struct step *)self;
    Py_buffer in;
    if (step->lock == NULL || names != NULL || PyTuple_Size(args) != 1 || *find_taken(step) ||
        !get_step(step, PyTuple_GetItem(args, 0), &in)) {
        PyObject *advance = PyObject_GetAttrString(self, "_advance");
        PyObject *made = advance == NULL ? NULL : PyObject_Call(advance, args, names);
        Py_XDECREF(advance);
        return made;
    }
    PyObject *made = NULL, *y = PyObject_CallFunctionObjArgs(empty, step->outputs, float32, NULL);
    /* Making an array may run destructors of the program, which may call streams. */
    if (y != NULL && choose_seat(step))
        made = *find_taken(step) ? PyObject_CallMethod(self, "_fail_busy", NULL) : run(step, in.buf, y);
    Py_XDECREF(y);
    PyBuffer_Release(&in);
    return made;
}

static int step_init(PyObject *self, PyObject *args, PyObject *names)
{
    static char *keys[] = {"function", "stream", "predictor", "bytes", "outputs", "dtype", "find_seat", "lock", NULL};
    struct step *step = (struct step *)self;
    unsigned long long function, stream, predictor;
    Py_ssize_t bytes;
    PyObject *outputs, *dtype, *find_seat, *lock;
    if (step->lock != NULL) {
        PyErr_SetString(PyExc_TypeError, "a stream is made once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, names, "KKKnOOOO!", keys, &function, &stream, &predictor, &bytes, &outputs,
                                     &dtype, &find_seat, lock_type, &lock))
        return -1;
    step->function = (step_fn)(uintptr_t)function;
    step->stream = (void *)(uintptr_t)stream;
    step->predictor = predictor;
    step->bytes = bytes;
    step->outputs = Py_NewRef(outputs);
    step->dtype = Py_NewRef(dtype);
    step->find_seat = Py_NewRef(find_seat);
    step->lock = Py_NewRef(lock);
    return 0;
}

static int step_traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct step *step = (struct step *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(step->outputs);
    Py_VISIT(step->dtype);
    Py_VISIT(step->find_seat);
    Py_VISIT(step->lock);
    return 0;
}

static void step_dealloc(PyObject *self)
{
    struct step *step = (struct step *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(step->outputs);
    Py_XDECREF(step->dtype);
    Py_XDECREF(step->find_seat);
    Py_XDECREF(step->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot step_slots[] = {{Py_tp_init, step_init},
                                   {Py_tp_call, step_call},
                                   {Py_tp_traverse, step_traverse},
                                   {Py_tp_dealloc, step_dealloc},
                                   {0, NULL}};
static PyType_Spec step_spec = {.name = "seqlstm._step.Step",
                                .basicsize = sizeof(struct step),
                                .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                .slots = step_slots};

/* ---- the module ---------------------------------------------------------------------------------------------------
 */

static bool find_numpy(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL)
        return false;
    array_type = PyObject_GetAttrString(numpy, "ndarray");
    empty = PyObject_GetAttrString(numpy, "empty");
    float32 = PyObject_CallMethod(numpy, "dtype", "s", "float32");
    dtype_name = PyUnicode_InternFromString("dtype");
    Py_DECREF(numpy);
    return array_type != NULL && empty != NULL && float32 != NULL && dtype_name != NULL;
}

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_step", .m_size = -1};

PyMODINIT_FUNC PyInit__step(void);

static bool add_type(PyObject *made, PyType_Spec *spec, const char *name, PyTypeObject **out_type)
{
    PyObject *type = PyType_FromSpec(spec);
    *out_type = (PyTypeObject *)type;
    return type != NULL && PyModule_AddObjectRef(made, name, type) == 0;
}

PyMODINIT_FUNC PyInit__step(void)
{
    PyTypeObject *step_type = NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && find_numpy() && add_type(made, &lock_spec, "Lock", &lock_type) &&
        add_type(made, &seat_spec, "Seat", &seat_type) && add_type(made, &step_spec, "Step", &step_type))
        return made;
    Py_XDECREF(made);
    return NULL;
}
