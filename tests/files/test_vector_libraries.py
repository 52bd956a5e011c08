"""Other programs read our files of vectors, and we read theirs."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from neural_brane.embedding import Embedding

IDS = ["ann", "bob", "çelik", "d'or", "eve", "fay", "gus", "hal"]


@pytest.fixture
def vectors() -> Embedding:
    """Return vectors with everything that an embedding can contain."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(8, 5)).astype(np.float32)
    return Embedding(table, IDS, {"method": "by hand"}, np.array(["known", "links"] * 4))


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_and_writes_word2vec(vectors, binary, tmp_path):
    keyed = pytest.importorskip("gensim.models").KeyedVectors
    path = tmp_path / ("v.bin" if binary else "v.w2v")
    vectors.save(path)
    found = keyed.load_word2vec_format(str(path), binary=binary)
    assert found.index_to_key == IDS
    np.testing.assert_array_equal(found.vectors, vectors.vectors)
    assert [node for node, _ in found.most_similar("ann", topn=4)] == [node for node, _ in vectors.nearest("ann", 4)]
    found.save_word2vec_format(str(path), binary=binary)
    again = Embedding.load(path)
    assert again.ids.tolist() == IDS
    np.testing.assert_array_equal(again.vectors, vectors.vectors)


def test_duckdb_finds_the_nearest_in_parquet(vectors, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "v.parquet"
    vectors.save(path)
    query = f"""SELECT v.id FROM '{path}' AS v, '{path}' AS asked WHERE asked.id = 'ann' AND v.id <> 'ann'
        ORDER BY array_cosine_similarity(v.vector::FLOAT[5], asked.vector::FLOAT[5]) DESC"""  # noqa: S608
    with duckdb.connect() as connection:
        nearest = [node for (node,) in connection.execute(query).fetchall()]
        assert nearest == [node for node, _ in vectors.nearest("ann", 7)]
        connection.read_parquet(str(path)).write_parquet(str(tmp_path / "duck.parquet"))
    again = Embedding.load(tmp_path / "duck.parquet")
    assert again.ids.tolist() == IDS
    np.testing.assert_array_equal(again.vectors, vectors.vectors)


def test_arrow_has_vectors_of_a_fixed_size(vectors, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    vectors.save(tmp_path / "v.parquet")
    table = parquet.read_table(tmp_path / "v.parquet")
    assert arrow.types.is_fixed_size_list(table.schema.field("vector").type)
    assert (table.schema.field("vector").type.list_size, table["id"].to_pylist()) == (5, IDS)
    numbers = table["vector"].combine_chunks().flatten().to_numpy().reshape(8, 5)
    np.testing.assert_array_equal(numbers, vectors.vectors)
    assert json.loads(parquet.read_metadata(tmp_path / "v.parquet").metadata[b"provenance"]) == {"method": "by hand"}
    parquet.write_table(table, tmp_path / "arrow.parquet")
    again = Embedding.load(tmp_path / "arrow.parquet")
    np.testing.assert_array_equal(again.vectors, vectors.vectors)
    assert again.made_from.tolist() == ["known", "links"] * 4


def test_pandas_and_polars_read_and_write_tables(vectors, tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for name in ("v.csv", "v.columns.parquet", "v.parquet"):
        vectors.save(tmp_path / name)
    for frame in (pandas.read_csv(tmp_path / "v.csv"), pandas.read_parquet(tmp_path / "v.columns.parquet")):
        np.testing.assert_array_equal(frame.set_index("id").to_numpy(np.float32), vectors.vectors)
    lists = pandas.read_parquet(tmp_path / "v.parquet")
    np.testing.assert_array_equal(np.stack(lists["vector"]), vectors.vectors)
    np.testing.assert_array_equal(polars.read_parquet(tmp_path / "v.parquet")["vector"].to_numpy(), vectors.vectors)
    lists.to_parquet(tmp_path / "pandas.parquet")
    pandas.DataFrame(vectors.vectors, index=IDS).to_csv(tmp_path / "pandas.csv")
    for name in ("pandas.parquet", "pandas.csv"):
        again = Embedding.load(tmp_path / name)
        assert again.ids.tolist() == IDS
        np.testing.assert_array_equal(again.vectors, vectors.vectors)


def test_numpy_reads_the_array_and_the_ids_beside_it(vectors, tmp_path):
    vectors.save(tmp_path / "v.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), vectors.vectors)
    assert (tmp_path / "v.ids.txt").read_text(encoding="utf-8").splitlines() == IDS
    assert Embedding.load(tmp_path / "v.npy").ids.tolist() == IDS
    (tmp_path / "v.ids.txt").rename(tmp_path / "names")
    assert Embedding.load(tmp_path / "v.npy").ids.tolist() == list(range(8))
    assert Embedding.load(tmp_path / "v.npy", ids=tmp_path / "names").ids.tolist() == IDS


def test_safetensors_reads_and_writes_them(vectors, tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    vectors.save(tmp_path / "v.safetensors")
    found = library.load_file(tmp_path / "v.safetensors")
    np.testing.assert_array_equal(found["embeddings"], vectors.vectors)
    assert json.loads(found["ids"].tobytes()) == IDS
    library.save_file({"weight": found["embeddings"]}, tmp_path / "w.safetensors", {"format": "pt"})
    again = Embedding.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(again.vectors, vectors.vectors)
    assert again.ids.tolist() == list(range(8))


@pytest.mark.filterwarnings("ignore")  # AnnData warns on import
def test_anndata_reads_and_writes_h5ad(vectors, tmp_path):
    anndata = pytest.importorskip("anndata")
    vectors.save(tmp_path / "v.h5ad")
    found = anndata.read_h5ad(tmp_path / "v.h5ad")
    np.testing.assert_array_equal(found.X, vectors.vectors)
    assert found.obs_names.tolist() == IDS
    assert found.obs["made_from"].tolist() == ["known", "links"] * 4
    assert json.loads(found.uns["neural_brane"]["provenance"]) == {"method": "by hand"}
    found.write_h5ad(tmp_path / "again.h5ad")
    moved = anndata.AnnData(obs=found.obs, obsm={"X_brane": found.X})
    moved.write_h5ad(tmp_path / "obsm.h5ad")
    for name in ("again.h5ad", "obsm.h5ad"):
        again = Embedding.load(tmp_path / name)
        assert again.ids.tolist() == IDS
        np.testing.assert_array_equal(again.vectors, vectors.vectors)


@pytest.mark.filterwarnings("ignore")  # TensorBoard warns on import
def test_tensorboards_projector_finds_vectors_and_ids(vectors, tmp_path):
    plugin = pytest.importorskip("tensorboard.plugins.projector.projector_plugin")
    config_of = pytest.importorskip("tensorboard.plugins.projector.projector_config_pb2").ProjectorConfig
    text_format = pytest.importorskip("google.protobuf.text_format")
    folder = tmp_path / "v.projector"
    vectors.save(folder)
    config = text_format.Parse((folder / plugin.metadata.PROJECTOR_FILENAME).read_text(), config_of())
    (embedding,) = config.embeddings
    numbers = plugin._read_tensor_tsv_file(str(folder / embedding.tensor_path))
    np.testing.assert_array_equal(np.asarray(numbers, np.float32), vectors.vectors)
    assert (folder / embedding.metadata_path).read_text(encoding="utf-8").split("\n") == [*IDS, ""]
    folder.rename(tmp_path / "logs")
    assert Embedding.load(tmp_path / "logs").provenance == {"method": "by hand"}


def parse_copy(text: str) -> list[tuple[str, list[float]]]:
    """Parse COPY's text format as strictly as PostgreSQL does: unescaped tabs and line ends only separate."""
    rows = []
    for line in text.removesuffix("\n").split("\n"):
        node, vector = line.split("\t")
        assert re.fullmatch(r"(?:[^\\\r]|\\[\\tnr])*", node)
        assert re.fullmatch(r"\[[-+.e0-9]+(,[-+.e0-9]+)*\]", vector)
        plain = re.sub(r"\\(.)", lambda found: {"t": "\t", "n": "\n", "r": "\r"}.get(found[1], found[1]), node)
        rows.append((plain, json.loads(vector)))
    return rows


def test_a_copy_file_means_the_same_to_postgresql(tmp_path):
    ids = ["a\tb", "\\N", "\\.", "a\\", "x\ny\r", "", "é", "{}"]
    table = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    Embedding(table, ids).save(tmp_path / "v.pgvector")
    rows = parse_copy((tmp_path / "v.pgvector").read_bytes().decode())
    assert [node for node, _ in rows] == ids
    np.testing.assert_array_equal(np.array([row for _, row in rows], np.float32), table)
    (tmp_path / "v.pgvector").write_text("7\t[1,2]\n\\b\t[3,4]\n\\.\n")
    assert Embedding.load(tmp_path / "v.pgvector").ids.tolist() == ["7", "\b"]


def test_vectors_are_attached_to_graphs_by_id(vectors, tmp_path):
    networkx, igraph = pytest.importorskip("networkx"), pytest.importorskip("igraph")
    torch, data = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    vectors.save(tmp_path / "v.parquet")
    found = Embedding.load(tmp_path / "v.parquet")
    order = IDS[::-1]
    path = networkx.path_graph(order)
    networkx.set_node_attributes(path, {node: found[node] for node in found}, "vector")
    assert path.nodes["eve"]["vector"].tolist() == vectors["eve"].tolist()
    other = igraph.Graph.Ring(8)
    other.vs["name"] = order
    other.vs["vector"] = [found[node] for node in other.vs["name"]]
    assert other.vs.find(name="gus")["vector"].tolist() == vectors["gus"].tolist()
    rows = found.vectors[[found.row(node) for node in order]]
    graph = data.Data(x=torch.from_numpy(rows), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert graph.x[order.index("bob")].tolist() == vectors["bob"].tolist()
