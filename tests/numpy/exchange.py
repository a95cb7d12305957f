# SPDX-License-Identifier: MIT
"""exchange.py LIBRARY: arrays go to NumPy and come from it without a copy, in both directions."""
import ctypes
import gc
import importlib.util
import sys
import threading
import unittest
import weakref

import numpy

import tidepool
from tidepool import COLUMN_MAJOR, ROW_MAJOR

LIBRARY = tidepool.Library(sys.argv.pop(1))
NAMES = [name for name in tidepool.TYPES if name != "bfloat16"]
ORDERS = (ROW_MAJOR, COLUMN_MAJOR)


def address_of(array):
    return array.__array_interface__["data"][0]


def bytes_at(address, count):
    return (ctypes.c_uint8 * count).from_address(address)


def numbers(name, shape):
    values = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape)
    return (values % 3 == 0) if name == "bool" else (values * 3 + 1).astype(name)


class Exchange(unittest.TestCase):
    def setUp(self):
        self.pool = tidepool.Pool(LIBRARY)

    def tearDown(self):
        tidepool.withdraw()
        gc.collect()
        self.pool.check()
        self.pool.destroy()

    def expect_same(self, ours, theirs, name):
        """The same memory, described the same way."""
        self.assertEqual(theirs.dtype, numpy.dtype(name))
        self.assertEqual(theirs.shape, ours.shape)
        self.assertEqual(address_of(theirs), ours.address)
        size = theirs.dtype.itemsize
        self.assertEqual(theirs.strides, tuple(stride * size for stride in ours.strides))

    def element(self, array, index, dtype):
        """One element of ours, as a NumPy scalar made of its bytes."""
        offset = sum(i * stride for i, stride in zip(index, array.strides)) * dtype.itemsize
        return numpy.frombuffer(bytes(bytes_at(array.address + offset, dtype.itemsize)), dtype)[0]

    def put(self, array, index, value):
        offset = sum(i * stride for i, stride in zip(index, array.strides)) * value.dtype.itemsize
        bytes_at(array.address + offset, value.dtype.itemsize)[:] = value.tobytes()

    # ---- ours to NumPy ----

    def expect_both_directions(self, ours, name):
        theirs = numpy.from_dlpack(ours)
        self.expect_same(ours, theirs, name)
        self.assertTrue(theirs.flags.writeable)
        wanted = numbers(name, ours.shape)
        theirs[...] = wanted
        for index in numpy.ndindex(*ours.shape):
            self.assertEqual(self.element(ours, index, theirs.dtype), wanted[index])
        last = tuple(extent - 1 for extent in ours.shape)
        self.put(ours, last, wanted[(0,) * len(last)])
        self.assertEqual(theirs[last], wanted[(0,) * len(last)])

    def test_every_type_in_both_orders_is_read_and_written_in_place(self):
        for name in NAMES:
            for order in ORDERS:
                with self.subTest(name=name, order=order), self.pool:
                    self.expect_both_directions(self.pool.acquire(name, (4, 6), order), name)
                    self.expect_both_directions(self.pool.acquire(name, (2, 3, 4), order), name)
                    self.expect_both_directions(self.pool.acquire(name, (5,), order), name)

    def test_views_in_both_orders_forwards_and_backwards(self):
        for name in NAMES:
            for order in ORDERS:
                with self.subTest(name=name, order=order), self.pool:
                    array = self.pool.acquire(name, (6, 8), order)
                    whole = numpy.from_dlpack(array)
                    whole[...] = numbers(name, (6, 8))
                    view = array.view((5, 1), (3, 3), (-2, 2))
                    theirs = numpy.from_dlpack(view)
                    self.expect_same(view, theirs, name)
                    numpy.testing.assert_array_equal(theirs, whole[5::-2, 1:7:2])
                    self.assertTrue(numpy.shares_memory(theirs, whole))
                    self.expect_both_directions(view, name)

    def test_a_row_repeated_by_a_step_of_nothing(self):
        with self.pool:
            array = self.pool.acquire("float64", (3, 4))
            numpy.from_dlpack(array)[...] = numbers("float64", (3, 4))
            theirs = numpy.from_dlpack(array.view((1, 0), (5, 4), (0, 1)))
            numpy.testing.assert_array_equal(theirs, [[13, 16, 19, 22]] * 5)

    def test_empty_and_of_no_dimension(self):
        with self.pool:
            theirs = numpy.from_dlpack(self.pool.acquire("float32", (3, 0, 2)))
            self.assertEqual(theirs.shape, (3, 0, 2))
            theirs = numpy.from_dlpack(self.pool.acquire("int16", ()))
            theirs[...] = -5
            self.assertEqual(theirs, -5)

    def test_what_numpy_holds_is_its_own_until_it_lets_go(self):
        with self.pool:
            array = self.pool.acquire("int64", (4, 6))
            theirs = numpy.from_dlpack(array)
            theirs[...] = numbers("int64", (4, 6))
        for _ in range(3):
            with self.pool:
                other = self.pool.acquire("int64", (4, 6))
                self.assertNotEqual(other.address, array.address)
                numpy.from_dlpack(other)[...] = -1
        numpy.testing.assert_array_equal(theirs, numbers("int64", (4, 6)))

    def test_what_numpy_let_go_is_the_slots_again(self):
        with self.pool:
            array = self.pool.acquire("int64", (4, 6))
            theirs = numpy.from_dlpack(array)[1:, ::2]
        self.assertGreater(self.pool.stats().bytes_exported, 0)
        allocations = self.pool.stats().allocations
        del theirs
        gc.collect()
        with self.pool:
            self.assertEqual(self.pool.acquire("int64", (4, 6)).address, array.address)
        self.assertEqual(self.pool.stats().bytes_exported, 0)
        self.assertEqual(self.pool.stats().allocations, allocations)

    def test_numpys_array_outlives_the_pool(self):
        pool = tidepool.Pool(LIBRARY)
        theirs = numpy.from_dlpack(pool.acquire("complex128", (50, 60)))
        theirs[...] = 1 + 2j
        pool.destroy()
        self.assertEqual(theirs.sum(), 3000 + 6000j)

    def test_another_thread_lets_go(self):
        with self.pool:
            held = [numpy.from_dlpack(self.pool.acquire("float64", (10,))) for _ in range(20)]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        with self.pool:
            allocations = self.pool.stats().allocations
            for _ in range(20):
                self.pool.acquire("float64", (10,))
            self.assertEqual(self.pool.stats().allocations, allocations)

    def test_what_no_consumer_takes_comes_back(self):
        with self.pool:
            self.pool.acquire("float64", (10,)).__dlpack__(max_version=(1, 0))
            refused = self.pool.acquire("bfloat16", (10,))
            with self.assertRaises((BufferError, RuntimeError)):
                numpy.from_dlpack(refused)
        tidepool.withdraw()
        with self.pool:
            allocations = self.pool.stats().allocations
            self.pool.acquire("float64", (10,))
            self.pool.acquire("bfloat16", (10,))
            self.assertEqual(self.pool.stats().allocations, allocations)

    # ---- NumPy's to us ----

    def expect_taken(self, theirs):
        ours = self.pool.take(theirs)
        self.expect_same(ours, theirs, theirs.dtype.name)
        for index in numpy.ndindex(*theirs.shape):
            self.assertEqual(self.element(ours, index, theirs.dtype), theirs[index])
        last = tuple(extent - 1 for extent in theirs.shape)
        self.put(ours, last, theirs[(0,) * len(last)])
        self.assertEqual(theirs[last], theirs[(0,) * len(last)])

    def test_numpys_arrays_are_used_in_place(self):
        for name in NAMES:
            values = numbers(name, (6, 8))
            for theirs in (values.copy(), numpy.asfortranarray(values), values.copy()[::2, ::-3],
                           values.copy().T, values.copy()[3], numpy.array(values[1, 1])):
                with self.subTest(name=name, strides=theirs.strides), self.pool:
                    self.expect_taken(theirs)

    def test_the_order_is_recognised(self):
        with self.pool:
            rows, columns = numbers("float32", (4, 6)), numpy.zeros((4, 6), order="F")
            self.assertEqual(self.pool.take(rows).header.contents.order, ROW_MAJOR)
            self.assertEqual(self.pool.take(columns).header.contents.order, COLUMN_MAJOR)

    def test_the_reference_goes_when_the_scope_ends(self):
        theirs = numbers("float64", (4, 6))
        gone = weakref.ref(theirs)
        with self.pool:
            with self.pool:
                ours = self.pool.take(theirs)
                del theirs
                gc.collect()
                self.assertIsNotNone(gone())
                self.assertEqual(self.element(ours, (1, 1), numpy.dtype("float64")), 22)
            self.assertIsNone(gone())

    def test_the_reference_goes_with_a_reset_and_with_the_pool(self):
        pool = tidepool.Pool(LIBRARY)
        first, second = numbers("float64", (4,)), numbers("float64", (4,))
        gone = [weakref.ref(first), weakref.ref(second)]
        pool.take(first)
        del first
        LIBRARY.done(LIBRARY.c.tide_pool_reset(pool.handle))
        self.assertIsNone(gone[0]())
        pool.take(second)
        del second
        self.assertIsNotNone(gone[1]())
        pool.destroy()
        self.assertIsNone(gone[1]())

    def test_a_thousand_exchanges_keep_nothing(self):
        theirs = numbers("float32", (4, 6))
        references = sys.getrefcount(theirs)
        for i in range(1000):
            with self.pool:
                self.pool.take(theirs)
                numpy.from_dlpack(self.pool.acquire("int32", (3, 4)))[...] = i
            if i == 10:
                allocations = self.pool.stats().allocations
        self.assertEqual(sys.getrefcount(theirs), references)
        self.assertEqual(self.pool.stats().allocations, allocations)

    # ---- others, where they are installed ----

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_pytorch_reads_and_writes_in_place(self):
        import torch
        with self.pool:
            ours = self.pool.acquire("float64", (4, 6), COLUMN_MAJOR)
            try:
                theirs = torch.from_dlpack(ours)
            except (TypeError, BufferError) as refusal:
                self.skipTest(f"this PyTorch takes no versioned tensors: {refusal}")
            self.assertEqual(theirs.data_ptr(), ours.address)
            self.assertEqual(tuple(theirs.stride()), ours.strides)
            theirs[3, 5] = 42
            self.assertEqual(self.element(ours, (3, 5), numpy.dtype("float64")), 42)
            del theirs


if __name__ == "__main__":
    print(f"NumPy {numpy.__version__}")
    unittest.main()
